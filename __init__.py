"""gradtape: automatic differentiation from plugins, with models that are saved with their gradients.

>>> import gradtape as gt
>>> x = gt.constant(3.0)
>>> with gt.GradientTape() as tape:
...     tape.watch(x)
...     y = x * x
>>> tape.gradient(y, x).item()
6.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .core.backend import backend
from .core.convert import as_tensor, constant
from .core.custom import custom_gradient, register_gradient
from .core.dtypes import default_dtype, set_default_dtype
from .core.function import function
from .core.module import Module
from .core.registry import disable_plugin, register_plugin, registry, unregister_plugin
from .core.spec import TensorSpec
from .core.state import init_scope
from .core.tape import GradientTape, UnconnectedGradients
from .core.tensor import Tensor
from .core.variable import Variable
from .plugins.ops.elementwise import *
import importlib as _il
for _m in ("like","reductions","scans","creation","shape","joining","indexing","linalg","nn","random"):
    try:
        _x = _il.import_module(f".plugins.ops.{_m}", __name__)
    except ModuleNotFoundError:
        continue
    globals()[_m] = _x
    if _m in ("like","reductions","scans","creation","shape","joining","indexing"):
        globals().update({n: getattr(_x, n) for n in getattr(_x, "__all__", ())})
    if _m == "linalg":
        globals().update({n: getattr(_x, n) for n in ("dot","einsum","matmul","outer","tensordot","trace") if hasattr(_x,n)})
    if _m == "nn":
        globals().update({n: getattr(_x, n) for n in ("clip_by_norm","one_hot") if hasattr(_x,n)})

if TYPE_CHECKING:
    from . import datasets, layers, saving, training
    from .saving import load, save

__version__ = "0.1.0"

# Imported when first used: what reads files and trains is not needed to differentiate.
_LAZY_MODULES = ("core", "datasets", "layers", "saving", "training")
_LAZY_NAMES = {"hookimpl": "core.hookspecs", "load": "saving", "save": "saving"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY_MODULES:
        return import_module(f".{name}", __name__)
    if name in _LAZY_NAMES:
        value = getattr(import_module(f".{_LAZY_NAMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY_MODULES, *_LAZY_NAMES})
