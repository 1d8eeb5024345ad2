"""Convert a file of format 1 to the container of format 2, in a separate process.

It needs the HDF5 library and the writer, so only that process imports it (see :mod:`.legacy`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import NotAGradtapeFile
from ..child import fail, limit_self, unlimited_time
from .library import Hdf5File
from .write import to_bytes


def convert(original: str, target: str, *limits: str) -> None:
    """Write the datasets of a file of format 1 to a file of format 2.

    Parameters
    ----------
    original, target
        Paths.
    limits
        As for :func:`within_limits`.
    """
    within_limits(_convert, original, target, *limits)


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


def _convert(original: str, target: str, max_bytes: int) -> None:
    with Hdf5File(original, max_bytes) as file:
        if file.attribute("format") != "gradtape":
            raise NotAGradtapeFile(f"its format is {file.attribute('format')[:40]!r}")
        attributes = {name: file.attribute(name) for name in ("format", "format_version")}
        texts: dict[str, str] = {}
        arrays: dict[str, Any] = {}
        # of a later version nothing more is looked at
        if attributes["format_version"][:2] == "1.":
            attributes["manifest_sha256"] = file.attribute("manifest_sha256")
            file.check()
            texts = {path: file.text(path) for path in file.texts}
            arrays = {path: file.array(path) for path in file.sizes if path not in texts}
        with open(target, "xb") as stream:  # nobody needs it on disk
            stream.write(to_bytes(attributes, texts, arrays))
