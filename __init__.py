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

from .core.base.context import init_scope
from .core.base.dtypes import default_dtype, set_default_dtype
from .core.base.spec import TensorSpec
from .core.functions.custom import custom_gradient, register_gradient
from .core.functions.function import function
from .core.module import Module
from .core.ops.backend import backend
from .core.tape.tape import GradientTape, UnconnectedGradients
from .core.tensors.convert import as_tensor, constant
from .core.tensors.tensor import Tensor
from .core.tensors.variable import Variable
from .core.transforms.vmap import vmap

if TYPE_CHECKING:
    from . import compat, datasets, layers, plot, saving, testing, training
    from .core.functions.recompute import recompute_grad
    from .core.ops.hookspecs import hookimpl
    from .core.ops.host import disable_plugin, register_plugin, registry, unregister_plugin
    from .core.tape import debug
    from .core.tensors.standard import *
    from .core.transforms.forward import ForwardAccumulator, register_jvp
    from .core.transforms.functional import (
        flatten,
        grad,
        hvp,
        jvp,
        linearize,
        value_and_grad,
        vjp,
    )
    from .core.transforms.jacobians import hessian, jacfwd, jacobian, jacrev
    from .plugins.ops.analysis.calculus import *
    from .plugins.ops.analysis.fitting import *
    from .plugins.ops.analysis.polynomials import *
    from .plugins.ops.control.control import *
    from .plugins.ops.control.scan import *
    from .plugins.ops.elementwise.arithmetic import *
    from .plugins.ops.elementwise.floating import *
    from .plugins.ops.elementwise.integers import *
    from .plugins.ops.elementwise.special import *
    from .plugins.ops.fourier import fft
    from .plugins.ops.indexing.indexing import *
    from .plugins.ops.indexing.selection import *
    from .plugins.ops.indexing.updates import *
    from .plugins.ops.linalg import namespace as linalg
    from .plugins.ops.linalg.namespace import *  # type: ignore[assignment]  # its cond is not at the top
    from .plugins.ops.network import nn
    from .plugins.ops.random import random
    from .plugins.ops.reductions.nan_statistics import *
    from .plugins.ops.reductions.reductions import *
    from .plugins.ops.reductions.scans import *
    from .plugins.ops.shapes.arrangement import *
    from .plugins.ops.shapes.creation import *
    from .plugins.ops.shapes.editing import *
    from .plugins.ops.shapes.joining import *
    from .plugins.ops.shapes.like import *
    from .plugins.ops.shapes.padding import *
    from .plugins.ops.shapes.sequences import *
    from .plugins.ops.shapes.shape import *
    from .plugins.ops.statistics.covariance import *
    from .plugins.ops.statistics.histograms import *
    from .plugins.ops.statistics.statistics import *
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
    "debug": ".core.tape.debug",
    "layers": ".layers",
    "plot": ".plot",
    "saving": ".saving",
    "testing": ".testing",
    "training": ".training",
}
_NAMES = {
    **dict.fromkeys(("ForwardAccumulator", "register_jvp"), ".core.transforms.forward"),
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
        ".core.transforms.functional",
    ),
    **dict.fromkeys(("hessian", "jacfwd", "jacobian", "jacrev"), ".core.transforms.jacobians"),
    "disable_plugin": ".core.ops.host",
    "hookimpl": ".core.ops.hookspecs",
    "load": ".saving",
    "recompute_grad": ".core.functions.recompute",
    "register_plugin": ".core.ops.host",
    "registry": ".core.ops.host",
    "save": ".saving",
    "unregister_plugin": ".core.ops.host",
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
    **dict.fromkeys(("ForwardAccumulator", "register_jvp"), ".core.transforms.forward"),
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
        ".core.transforms.functional",
    ),
    **dict.fromkeys(("hessian", "jacfwd", "jacobian", "jacrev"), ".core.transforms.jacobians"),
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
        value = getattr(import_module(".core.tensors.standard", __name__), name)
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
