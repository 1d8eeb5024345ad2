"""Files of format 1, which the HDF5 library wrote: another process reads them, within limits.

A file can crash the library, and the dense groups of those files cannot be checked beforehand
without reading as much of them as the library does. So a process that has nothing to lose opens the
file, checks its structure (:mod:`.hdf5`), and writes all datasets to a file of the container of
format 2. This process reads that one as strictly as any other.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

from ..errors import DamagedFile, NotAGradtapeFile, UnsafeFile
from . import profile as p
from .child import ChildEnded, fail, limit_self, run_child, unlimited_time
from .source import Source

__all__ = ["convert", "converted", "within_limits"]

# For the start of Python and its libraries, however busy the machine is.
_STARTING = 60
# Of computing, then; a file of kilobytes takes a thirtieth of it.
_SECONDS, _BYTES_PER_SECOND = 1.0, 20 * 2**20
# Beside what the process has when it begins to read.
_MEMORY = 160 * 2**20
# NumPy's threads are not used, and would take memory on machines of many cores.
_ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_CODE = """
import importlib
importlib.import_module(sys.argv[2]).convert(*sys.argv[3:])
"""


def converted(source: Source, max_bytes: int, converter: str = __name__) -> Source:
    """Return a file of format 1 as one in the container of format 2.

    Parameters
    ----------
    source
        The file.
    max_bytes
        The most that its datasets may claim together.
    converter
        The module whose ``convert`` the other process runs; another one reads other files.

    Raises
    ------
    LoadError
        If the file is damaged or unsafe, or if reading it crashes, takes too long or too much.
    """
    with tempfile.TemporaryDirectory(prefix="gradtape-") as folder:
        target = os.path.join(folder, "converted.h5")
        original = os.path.join(folder, "original.h5")
        # the bytes that are open here, whatever the path leads to by now
        source.copy_to(original)
        size = min(max_bytes, p.most_claimed(source.size))
        seconds = _SECONDS + size / _BYTES_PER_SECOND
        arguments = [converter, original, target, str(max_bytes)]
        arguments += [str(_MEMORY + 3 * size), str(seconds)]
        try:
            run_child(_CODE, arguments, _STARTING + 10 * seconds, _ALONE)
        except ChildEnded as ended:
            if ended.late:
                raise UnsafeFile("reading it takes too long; it may be made to") from None
            raise DamagedFile(f"the HDF5 library fails on it ({ended})") from None
        found = Source(target)
        found.path = source.path
        if os.name == "nt":  # an open file cannot be removed there
            found = Source(found.read(0, found.size))
        return found


def convert(original: str, target: str, max_bytes: str, memory: str, seconds: str) -> None:
    """Write the datasets of a file of format 1 to ``target``: the other process.

    Parameters
    ----------
    original, target
        Paths.
    max_bytes
        The most that the datasets may claim together.
    memory, seconds
        How much memory and time of the processor reading may take, where the system can limit it.
    """
    from .hdf5 import Hdf5File
    from .write import to_bytes

    def action(original: str, target: str, max_bytes: int) -> None:
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

    within_limits(action, original, target, max_bytes, memory, seconds)


def within_limits(
    action: Callable[[str, str, int], None], original: str, target: str, *limits: str
) -> None:
    """Run a conversion in the other process, and tell the first one what went wrong.

    Parameters
    ----------
    action
        What reads ``original`` and writes ``target``, for arrays of so many bytes at most. What it
        needs is imported before.
    original, target, limits
        The arguments of :func:`convert`.
    """
    max_bytes, memory, seconds = limits
    limit_self(int(memory), float(seconds))
    try:
        action(original, target, int(max_bytes))
    except Exception as error:
        message = str(error).removeprefix(f"{original}: ").replace(original, "the file")[:2000]
        fail(error, message)
    unlimited_time()  # to end takes longer than to read a small file
