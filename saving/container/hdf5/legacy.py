"""Files that the HDF5 library wrote: a separate process reads them, within limits.

A file can crash the library, and checking the dense groups of those files takes as much reading as
the library does. A separate process therefore opens the file, checks its structure
(:mod:`.library`), and writes all datasets to a file of another format. This process reads that file
as strictly as any other.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from ...errors import DamagedFile, LoadError, UnsafeFile
from .. import limits
from ..child import ChildEnded, run_child
from ..source import Source

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


def _folder() -> Any:
    try:
        return tempfile.TemporaryDirectory(prefix="gradtape-")
    except OSError as error:
        raise LoadError(
            f"reading it needs a temporary folder ({error}); set TMPDIR to a folder that can be "
            "written"
        ) from None


def converted(source: Source, max_bytes: int, converter: str) -> Source:
    """Return a file that the HDF5 library wrote in the format of a converter.

    Parameters
    ----------
    source
        The file.
    max_bytes
        The maximum size that its datasets may claim together.
    converter
        The module whose ``convert`` the child process runs. It is found by its name, because it
        needs the HDF5 library, which is for the other process alone.

    Raises
    ------
    LoadError
        If the file is damaged or unsafe, or if reading it crashes, takes too long or needs too much
        memory.
    """
    with _folder() as folder:
        target = os.path.join(folder, "converted.h5")
        original = os.path.join(folder, "original.h5")
        # the bytes that are open here, whatever the path leads to by now
        source.copy_to(original)
        size = min(max_bytes, limits.most_claimed(source.size))
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
