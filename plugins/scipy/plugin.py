"""The plugin that lets ``scipy.special`` functions receive tensors.

It is cheap to import. The modules of functions are imported when a ufunc of SciPy first receives a
tensor, or when a file names one of these ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.extend import Op, hookimpl, lazy_module

#: The meaning of what files name has never changed.
gradtape_compatible_since = "0.1"

_SYMMETRIC = "w, v = gradtape.linalg.eigh(a) and (v * gradtape.{}(w)) @ v.T for a symmetric matrix"
#: The functions of SciPy that read values, and what keeps gradients instead.
INSTEAD = {
    "scipy.special": {
        "assoc_legendre_p": "scipy.special.lpmv",
        "comb": "scipy.special.binom",
        "diric": "gradtape.sin(n * x / 2) / (n * gradtape.sin(x / 2))",
        "factorial": "scipy.special.gamma(n + 1)",
        "legendre_p": "scipy.special.eval_legendre",
        "log_softmax": "gradtape.nn.log_softmax",
        "logsumexp": "gradtape.logsumexp",
        "multigammaln": "gradtape.lgamma and gradtape.sum",
        "perm": "scipy.special.poch(N - k + 1, k)",
        "polygamma": "gradtape.polygamma",
        "softmax": "gradtape.nn.softmax",
        "sph_harm_y": "scipy.special.lpmv",
        "sph_legendre_p": "scipy.special.lpmv",
        "spherical_in": "gradtape.sqrt(pi / (2 * z)) * scipy.special.iv(n + 0.5, z)",
        "spherical_jn": "gradtape.sqrt(pi / (2 * z)) * scipy.special.jv(n + 0.5, z)",
        "spherical_kn": "gradtape.sqrt(pi / (2 * z)) * scipy.special.kv(n + 0.5, z)",
        "spherical_yn": "gradtape.sqrt(pi / (2 * z)) * scipy.special.yv(n + 0.5, z)",
    },
    "scipy.linalg": {
        "cho_factor": "gradtape.linalg.cholesky",
        "cho_solve": "gradtape.linalg.solve_triangular, twice",
        "cholesky": "gradtape.linalg.cholesky",
        "cosm": _SYMMETRIC.format("cos"),
        "det": "gradtape.linalg.det",
        "eig": "gradtape.linalg.eig",
        "eigh": "gradtape.linalg.eigh",
        "eigvals": "gradtape.linalg.eigvals",
        "eigvalsh": "gradtape.linalg.eigvalsh",
        "expm": "gradtape.linalg.expm",
        "funm": _SYMMETRIC.format("<function>"),
        "inv": "gradtape.linalg.inv",
        "logm": _SYMMETRIC.format("log"),
        "lstsq": "gradtape.linalg.lstsq",
        "lu": "gradtape.linalg.solve or gradtape.linalg.qr",
        "lu_factor": "gradtape.linalg.solve",
        "lu_solve": "gradtape.linalg.solve",
        "norm": "gradtape.linalg.norm",
        "pinv": "gradtape.linalg.pinv",
        "qr": "gradtape.linalg.qr",
        "sinm": _SYMMETRIC.format("sin"),
        "solve": "gradtape.linalg.solve",
        "solve_sylvester": (
            "gradtape.linalg.solve with kron(I, a) + kron(b.T, I), by gradtape.linalg.kron"
        ),
        "solve_triangular": "gradtape.linalg.solve_triangular",
        "sqrtm": _SYMMETRIC.format("sqrt"),
        "svd": "gradtape.linalg.svd",
        "svdvals": "gradtape.linalg.svdvals",
    },
}


#: The modules that define functions, by family.
_FAMILIES = ("bessel", "distributions", "elementary", "polynomials")


def building() -> Any:
    """Return the module ``building``, whose tables have the functions of all families."""
    for family in _FAMILIES:
        lazy_module(f"plugins.scipy.{family}")
    return lazy_module("plugins.scipy.building")


def _functions(*, private: bool) -> dict[str, Any]:
    """Return what runs on tensors, by the ufunc's name; ``private``: those of SciPy's own, too."""
    rows = building().FUNCTIONS.values()
    return {row.name: row.run for row in rows if private or not row.private}


@hookimpl(trylast=True)
def gradtape_late_ops() -> dict[str, Callable[[], list[Op]]]:
    """Provide the ops of ``scipy.special``, when one is first needed."""
    return {"scipy": lambda: building().OPS}


@hookimpl(trylast=True)
def gradtape_functions() -> dict[str, Callable[[], Mapping[str, Any]]]:
    """Provide the ops that replace SciPy's ufuncs, and names for its other functions."""
    found: dict[str, Callable[[], Mapping[str, Any]]] = {
        # with SCIPY_ARRAY_API=1, scipy.special has Python functions that call these ufuncs
        "scipy.special._ufuncs": lambda: _functions(private=True),
        "scipy.special": lambda: {**_functions(private=False), **INSTEAD["scipy.special"]},
        "scipy.linalg": lambda: INSTEAD["scipy.linalg"],
    }
    return found


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], dict[str, Any]]]:
    """List SciPy in ``gradtape doctor``."""
    return {"scipy": lambda: {"packages": {"scipy": "scipy"}}}
