"""Convert a file that the HDF5 library wrote, in a separate process (see :mod:`.legacy`)."""

from __future__ import annotations

from collections.abc import Callable

from ..child import fail, limit_self, unlimited_time


def within_limits(
    action: Callable[[str, str, int], None],
    original: str,
    target: str,
    max_bytes: str,
    memory: str,
    seconds: str,
) -> None:
    """Run a conversion in the child process, and report errors to the parent.

    Parameters
    ----------
    action
        A function that reads ``original`` and writes ``target``, for a maximum size of arrays in
        bytes.
    original, target
        Paths.
    max_bytes
        The maximum size that the datasets may claim together.
    memory, seconds
        The maximum memory and processor time of reading, where the system can limit them.
    """
    limit_self(int(memory), float(seconds))
    try:
        action(original, target, int(max_bytes))
    except Exception as error:
        message = str(error).removeprefix(f"{original}: ").replace(original, "the file")[:2000]
        fail(error, message)
    unlimited_time()  # to end takes longer than to read a small file
