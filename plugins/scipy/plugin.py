"""The plugin that lets ``scipy.special`` functions receive tensors.

It is cheap to import. The tables of functions are imported when a ufunc of SciPy first receives a
tensor, or when a file names one of these ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.extend import Op, hookimpl, late

__all__ = ["gradtape_functions", "gradtape_late_ops"]

#: The functions of SciPy that read values, and what keeps gradients instead.
INSTEAD = {
    "scipy.special": {
        "comb": "scipy.special.binom",
        "jvp": "scipy.special.jv",
        "log_softmax": "gradtape.nn.log_softmax",
        "logsumexp": "gradtape.logsumexp",
        "polygamma": "gradtape.polygamma",
        "softmax": "gradtape.nn.softmax",
    },
    "scipy.linalg": {
        "cho_factor": "gradtape.linalg.cholesky",
        "cho_solve": "gradtape.linalg.cholesky_solve",
        "cholesky": "gradtape.linalg.cholesky",
        "det": "gradtape.linalg.det",
        "eig": "gradtape.linalg.eig",
        "eigh": "gradtape.linalg.eigh",
        "eigvals": "gradtape.linalg.eigvals",
        "eigvalsh": "gradtape.linalg.eigvalsh",
        "expm": "gradtape.linalg.expm",
        "inv": "gradtape.linalg.inv",
        "logm": "gradtape.linalg.logm",
        "lstsq": "gradtape.linalg.lstsq",
        "lu": "gradtape.linalg.lu",
        "norm": "gradtape.linalg.norm",
        "pinv": "gradtape.linalg.pinv",
        "qr": "gradtape.linalg.qr",
        "solve": "gradtape.linalg.solve",
        "solve_sylvester": "gradtape.linalg.solve_sylvester",
        "solve_triangular": "gradtape.linalg.solve_triangular",
        "sqrtm": "gradtape.linalg.sqrtm",
        "svd": "gradtape.linalg.svd",
        "svdvals": "gradtape.linalg.svdvals",
    },
}


def _tables() -> Any:
    return late("plugins.scipy.tables")


@hookimpl
def gradtape_late_ops() -> dict[str, Callable[[], list[Op]]]:
    """Provide the ops of ``scipy.special``, when one is first needed."""
    return {"scipy": lambda: _tables().OPS}


@hookimpl
def gradtape_functions() -> dict[str, Callable[[], Mapping[str, Any]]]:
    """Provide the ops that replace SciPy's ufuncs, and names for its other functions."""
    found: dict[str, Callable[[], Mapping[str, Any]]] = {
        "scipy.special": lambda: {**_tables().UFUNCS, **INSTEAD["scipy.special"]},
        "scipy.special._ufuncs": lambda: _tables().PRIVATE,
        "scipy.linalg": lambda: INSTEAD["scipy.linalg"],
    }
    return found
