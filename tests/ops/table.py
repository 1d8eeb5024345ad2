"""The samples of all ops, and of the public functions made of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import samples_control
import samples_elementwise
import samples_empty
import samples_functions
import samples_linalg
import samples_network
import samples_numbers
import samples_reductions
import samples_shape
import samples_transforms

import gradtape as gt
from gradtape.core.extend import Op
from gradtape.testing import Sample

TABLES = (
    samples_elementwise.SAMPLES,
    samples_reductions.SAMPLES,
    samples_shape.SAMPLES,
    samples_linalg.SAMPLES,
    samples_network.SAMPLES,
    samples_numbers.SAMPLES,
    samples_transforms.SAMPLES,
    samples_empty.SAMPLES,
    samples_control.SAMPLES,
)
SAMPLES: dict[str, list[Sample]] = {}
for table in TABLES:
    for name, samples in table.items():
        SAMPLES.setdefault(name, []).extend(samples)

#: The samples of public functions that are no op of the same name, by their names in gradtape.
FUNCTIONS: dict[str, list[Sample]] = samples_functions.SAMPLES

_DRAWS = "it draws from the shared generator: its op has samples, and tests/plugins/test_random.py"
#: Public functions that samples do not suit, with the reason.
NOT_SAMPLED = {
    **{
        f"random.{name}": _DRAWS
        for name in (
            "bernoulli categorical choice exponential gamma normal permutation randint shuffle "
            "truncated_normal uniform"
        ).split()
    },
    "map": "it takes a function: tests/core/test_control.py",
    "broadcast_shapes": "it takes shapes: tests/core/test_standard.py",
    "random.Generator": "a class: tests/plugins/test_random.py",
    "random.set_seed": "it makes nothing: tests/plugins/test_random.py",
}


def public_names(module: Any) -> list[str]:
    """Return a module's public names; of gradtape itself, those that are for numbers."""
    if module is not gt:
        return list(module.__all__)
    # what `__all__` lists has to do with tapes, modules and plugins
    return [name for name in dir(gt) if not name.startswith("_") and name not in gt.__all__]


def public_functions() -> dict[str, Any]:
    """Return the public ops and functions made of ops, by name."""
    modules = {"": gt, **{f"{name}.": getattr(gt, name) for name in gt._OP_MODULES}}
    found: dict[str, Any] = {}
    for prefix, module in modules.items():
        for name in public_names(module):
            function = getattr(module, name)
            home = getattr(function, "__module__", None) or type(function).__module__
            # dtypes, and what is asked of them, are NumPy's own
            if callable(function) and home.startswith("gradtape."):
                found[prefix + name] = function
    return found


def composed() -> dict[str, Any]:
    """Return the public functions that are neither ops nor call the op of the same name."""
    own = gt.registry().ops
    functions = public_functions()
    short = {name: name.rpartition(".")[2] for name in functions}
    # the condition number has the name of the op that chooses between graphs
    taken = {
        id(function)
        for name, function in functions.items()
        if short[name] in own and name != "linalg.cond"
    }
    found: dict[str, Any] = {}
    for name, function in functions.items():
        if not isinstance(function, Op) and id(function) not in taken:
            taken.add(id(function))
            found[name] = function
    return found


def as_called(name: str) -> Callable[..., Any]:
    """Return a public function that takes the tensors of its samples by position."""
    function = functools.reduce(getattr, name.split("."), gt)
    parameters = inspect.signature(function).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if not keywords:
        return function

    def call(*tensors: Any, **params: Any) -> Any:
        return function(**dict(zip(keywords, tensors, strict=True)), **params)

    call.__name__ = function.__name__
    return call
