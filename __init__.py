"""gradtape: automatic differentiation from plugins, models saved with their gradients.

>>> import gradtape as gt
>>> x = gt.constant(3.0)
>>> with gt.GradientTape() as tape:
...     tape.watch(x)
...     y = x * x
>>> tape.gradient(y, x).item()
6.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core.backend import backend
from .core.convert import as_tensor, constant
from .core.custom import custom_gradient, register_gradient
from .core.dtypes import default_dtype, set_default_dtype
from .core.function import function
from .core.module import Module
from .core.spec import TensorSpec
from .core.state import init_scope
from .core.tape import GradientTape, UnconnectedGradients
from .core.tensor import Tensor
from .core.variable import Variable
from .core.vmap import vmap

if TYPE_CHECKING:
    from . import compat, datasets, layers, plot, saving, testing, training
    from .core import debug
    from .core.forward import ForwardAccumulator, register_jvp
    from .core.functional import (
        flatten,
        grad,
        hvp,
        jvp,
        linearize,
        value_and_grad,
        vjp,
    )
    from .core.hookspecs import hookimpl
    from .core.jacobian_functions import hessian, jacfwd, jacobian, jacrev
    from .core.recompute import recompute_grad
    from .core.registry import disable_plugin, register_plugin, registry, unregister_plugin
    from .core.standard import *
    from .plugins.ops import fft, linalg, nn, random
    from .plugins.ops.arrangement import *
    from .plugins.ops.calculus import *
    from .plugins.ops.control import *
    from .plugins.ops.counting import *
    from .plugins.ops.covariance import *
    from .plugins.ops.creation import *
    from .plugins.ops.editing import *
    from .plugins.ops.elementwise import *
    from .plugins.ops.fitting import *
    from .plugins.ops.floating import *
    from .plugins.ops.indexing import *
    from .plugins.ops.joining import *
    from .plugins.ops.like import *
    from .plugins.ops.linalg import *  # type: ignore[assignment]  # its cond is not at the top
    from .plugins.ops.nan_statistics import *
    from .plugins.ops.padding import *
    from .plugins.ops.polynomials import *
    from .plugins.ops.reductions import *
    from .plugins.ops.row_loops import *
    from .plugins.ops.scans import *
    from .plugins.ops.selection import *
    from .plugins.ops.sequences import *
    from .plugins.ops.shape import *
    from .plugins.ops.special import *
    from .plugins.ops.statistics import *
    from .plugins.ops.updates import *
    from .plugins.ops.whole_numbers import *
    from .saving import load, save

__all__ = [
    "ForwardAccumulator",
    "GradientTape",
    "Module",
    "Tensor",
    "TensorSpec",
    "UnconnectedGradients",
    "Variable",
    "as_tensor",
    "backend",
    "compat",
    "constant",
    "custom_gradient",
    "datasets",
    "debug",
    "default_dtype",
    "disable_plugin",
    "fft",
    "flatten",
    "function",
    "grad",
    "hessian",
    "hookimpl",
    "hvp",
    "init_scope",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "layers",
    "linalg",
    "linearize",
    "load",
    "nn",
    "plot",
    "random",
    "recompute_grad",
    "register_gradient",
    "register_jvp",
    "register_plugin",
    "registry",
    "save",
    "saving",
    "set_default_dtype",
    "testing",
    "training",
    "unregister_plugin",
    "value_and_grad",
    "vjp",
    "vmap",
]
__version__ = "0.1.0"

# What follows is imported when it is first used, so that `import gradtape` stays quick.
_MODULES = {
    "compat": ".compat",
    "core": ".core",
    "datasets": ".datasets",
    "debug": ".core.debug",
    "layers": ".layers",
    "plot": ".plot",
    "saving": ".saving",
    "testing": ".testing",
    "training": ".training",
}
_NAMES = {
    **dict.fromkeys(("ForwardAccumulator", "register_jvp"), ".core.forward"),
    **dict.fromkeys(
        (
            "flatten",
            "grad",
            "hvp",
            "jvp",
            "linearize",
            "value_and_grad",
            "vjp",
        ),
        ".core.functional",
    ),
    **dict.fromkeys(("hessian", "jacfwd", "jacobian", "jacrev"), ".core.jacobian_functions"),
    "disable_plugin": ".core.registry",
    "hookimpl": ".core.hookspecs",
    "load": ".saving",
    "recompute_grad": ".core.recompute",
    "register_plugin": ".core.registry",
    "registry": ".core.registry",
    "save": ".saving",
    "unregister_plugin": ".core.registry",
}
# what the array API standard has beside ops
_STANDARD = frozenset(
    "__array_namespace_info__ asarray astype bool broadcast_shapes can_cast complex64 complex128 "
    "copy e empty empty_like finfo float16 float32 float64 from_dlpack iinfo inf int8 int16 int32 "
    "int64 isdtype nan newaxis pi result_type uint8 uint16 uint32 uint64".split()
)
_OP_MODULES = ("fft", "linalg", "nn", "random")
# Families whose public names stand directly under `gradtape`.
_FLAT = (
    "arrangement",
    "calculus",
    "control",
    "counting",
    "covariance",
    "creation",
    "editing",
    "elementwise",
    "fitting",
    "floating",
    "indexing",
    "joining",
    "like",
    "nan_statistics",
    "padding",
    "polynomials",
    "reductions",
    "row_loops",
    "scans",
    "selection",
    "sequences",
    "shape",
    "special",
    "statistics",
    "updates",
    "whole_numbers",
)
_FLAT_NAMES = {
    **dict.fromkeys(("ForwardAccumulator", "register_jvp"), ".core.forward"),
    **dict.fromkeys(
        (
            "flatten",
            "grad",
            "hvp",
            "jvp",
            "linearize",
            "value_and_grad",
            "vjp",
        ),
        ".core.functional",
    ),
    **dict.fromkeys(("hessian", "jacfwd", "jacobian", "jacrev"), ".core.jacobian_functions"),
    "clip_by_norm": "nn",
    "cross": "linalg",
    "dot": "linalg",
    "einsum": "linalg",
    "inner": "linalg",
    "kron": "linalg",
    "matmul": "linalg",
    "matrix_transpose": "linalg",
    "matvec": "linalg",
    "one_hot": "nn",
    "outer": "linalg",
    "tensordot": "linalg",
    "trace": "decompositions",
    "vdot": "linalg",
    "vecdot": "linalg",
    "vecmat": "linalg",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = import_module(_MODULES[name], __name__)
    elif name in _NAMES:
        value = getattr(import_module(_NAMES[name], __name__), name)
    elif name in _STANDARD:
        value = getattr(import_module(".core.standard", __name__), name)
    elif name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    else:
        value = _op(name)
    globals()[name] = value
    return value


def _op(name: str) -> Any:
    """Return a public op, or one of the modules of ops."""
    families = import_module(".plugins.ops", __name__)
    if name in _OP_MODULES:
        return getattr(families, name)
    if name in _FLAT_NAMES:
        return getattr(getattr(families, _FLAT_NAMES[name]), name)
    for family in _FLAT:
        if name in getattr(families, family).__all__:
            return getattr(getattr(families, family), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    families = import_module(".plugins.ops", __name__)
    flat = [name for family in _FLAT for name in getattr(families, family).__all__]
    public = [name for name in globals() if not name.startswith("_")]
    return sorted(
        {*public, *flat, *_MODULES, *_NAMES, *_OP_MODULES, *_FLAT_NAMES, *_STANDARD, "__version__"}
    )
