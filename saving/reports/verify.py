"""``verify``: check that a file computes the same values as when it was saved."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from dataclasses import asdict

from ...core.extend import (
    MODULES,
    as_group_of_one,
    current_backend,
    current_device,
    listed,
    registry,
)
from ...core.extend import backend as select_backend
from ..container.child import ChildEnded, fail, limit_self, no_python, run_child
from ..container.storage import Storage, open_file, recognised
from ..errors import UnsafeFile, guarded
from ..reading.contents import open_contents
from .checks import Check, Report, checked, too_long

__all__ = ["Check", "Report", "answer", "verify"]

_CODE = """
from gradtape.saving.reports.verify import answer
answer(sys.argv[2])
"""


def verify(
    path: str | os.PathLike[str],
    backend: str | None = None,
    *,
    max_bytes: int | None = None,
    max_memory: float | None = None,
    max_seconds: float = 120.0,
) -> Report:
    """Load a file, run its functions on its golden vectors, and compare.

    It runs the functions of an untrusted file, in a separate process that is ended when it exceeds
    the limits. That process has the installed plugins. If a plugin or a gradient rule was
    registered by hand (:func:`gradtape.register_plugin`, :func:`gradtape.register_gradient`), or if
    no Python can be started (in a frozen application), this process computes instead: memory is
    then estimated from shapes before each sample, time is checked after each, and loops end after
    10,000 steps.

    Parameters
    ----------
    path
        The file.
    backend
        The backend to run on; the current one by default.
    max_bytes
        As in :func:`gradtape.load`.
    max_memory
        The maximum bytes for computing, in addition to what was loaded: by default 1 GiB, and 8
        times the size of the file's arrays. On a GPU, and on systems that cannot limit a process,
        it is only compared with the estimate.
    max_seconds
        The maximum time for everything. With ``math.inf`` for this and ``max_memory``, this process
        computes, without limits.

    Returns
    -------
    Report
        ``report.ok`` says whether outputs, gradients and second-order gradients match.

    Raises
    ------
    LoadError
        If the file cannot be loaded; :class:`gradtape.saving.UnsafeFile` if it exceeds the memory
        or time limit.
    LookupError
        If no plugin provides the backend.
    ValueError
        If a limit is not above 0.

    Examples
    --------
    >>> import os, tempfile
    >>> model = gt.layers.Dense(2)
    >>> shape = model(gt.ones((1, 3))).shape
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.h5")
    ...     gt.save(model, path)
    ...     report = gt.saving.verify(path)
    >>> report.ok
    True
    """
    for name, limit in (("max_memory", max_memory), ("max_seconds", max_seconds)):
        if limit is not None and not limit > 0:
            raise ValueError(f"verify: {name} must be above 0, got {limit!r}")
    place = os.fsdecode(path)
    if backend:
        with select_backend(backend):  # says here what there is, if it is not there
            pass
    with as_group_of_one(), guarded(place):
        if not _runs_in_child(max_memory, max_seconds):
            return checked(place, backend, max_bytes, max_memory, max_seconds)
        _check(place, max_bytes)
        arguments = {
            "path": place,
            "backend": backend or _current(),
            "max_bytes": max_bytes,
            "max_memory": max_memory,
        }
        late = None if math.isinf(max_seconds) else max_seconds
        try:
            found = json.loads(run_child(_CODE, [json.dumps(arguments)], late))
        except ChildEnded as ended:
            if ended.late:
                raise too_long(max_seconds) from None
            raise UnsafeFile(f"computing it ended the process ({ended})") from None
    for text in found["warnings"]:
        warnings.warn(text, stacklevel=2)
    name = backend or current_backend().name
    checks = [Check(**check) for check in found["checks"]]
    return Report(place, name, checks, [(label, reason) for label, reason in found["skipped"]])


def _check(path: str, max_bytes: int | None) -> None:
    """Raise for a damaged file or one of another kind, before a process is started.

    A container that leaves the checks to a library is read only there, within the limits.
    """
    container = recognised(path)
    if container is not None and type(container).open is Storage.open:
        return
    with open_file(path, max_bytes) as file:
        open_contents(file)


def _runs_in_child(max_memory: float | None, max_seconds: float) -> bool:
    """Return whether to run the functions in another process, which the platform must support."""
    if max_memory == max_seconds == math.inf or no_python():
        return False
    known = registry()
    by_hand = any(type(op.rules_provider) is str for op in known.ops.values())
    # these the other process imports, too, but not from the working directory
    modules = [] if "" in sys.path else listed(MODULES)
    return not by_hand and all(x.distribution or x.name in modules for x in known.infos)


def _current() -> str:
    device = current_device()
    return current_backend().name + (f":{device}" if device else "")


def answer(request: str) -> None:
    """Verify a file and print the report as JSON, in the child process.

    Parameters
    ----------
    request
        Arguments of :func:`verify`, as JSON.
    """
    asked = json.loads(request)
    output, sys.stdout = sys.stdout, sys.stderr  # plugins may print
    is_numpy = asked["backend"].partition(":")[0] == "numpy"
    try:
        with guarded(asked["path"]), warnings.catch_warnings(record=True) as noted:
            bound = limit_self if is_numpy else lambda size: None
            report = checked(**asked, max_seconds=math.inf, bound=bound)
    except Exception as error:
        sys.stdout = output
        fail(error, str(error))
    found = {
        "checks": [asdict(check) for check in report.checks],
        "skipped": report.skipped,
        "warnings": [str(item.message) for item in noted],
    }
    print(json.dumps(found), file=output)
