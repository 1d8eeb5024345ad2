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
from gradtape.public import HOMES
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
    **dict.fromkeys(("ndim", "shape", "size"), "it tells numbers: tests/core/test_numpy_names.py"),
    "random.Generator": "a class: tests/plugins/test_random.py",
    "random.set_seed": "it makes nothing: tests/plugins/test_random.py",
}


def public_functions() -> dict[str, Any]:
    """Return the public ops and functions made of ops, by name; other names of them left out."""
    spaces = {f"{name}.": getattr(gt, name) for name in ("fft", "linalg", "nn", "random")}
    # of what stands directly under gradtape, the modules of numbers: no tapes, no transformations
    numbers = (".plugins.ops.", ".core.tensors.questions", ".core.tensors.standard")
    paths = [name for name, home in HOMES.items() if home.startswith(numbers) and name[0] != "_"]
    paths += [prefix + name for prefix, module in spaces.items() for name in module.__all__]
    found: dict[str, Any] = {}
    for path in sorted(paths, key=lambda path: (path.count("."), path)):
        function = functools.reduce(getattr, path.split("."), gt)
        home = getattr(function, "__module__", None) or type(function).__module__
        # dtypes, and what is asked of them, are NumPy's own
        if callable(function) and home.partition(".")[0] == "gradtape":
            found[path] = function
    return found


def composed() -> dict[str, Any]:
    """Return the public functions that are neither ops nor call the op of the same name."""
    own = gt.registry().ops
    functions = public_functions()
    short = {name: name.rpartition(".")[2] for name in functions}
    # the condition number has the name of the op that chooses between graphs, and the matrix that
    # of the op behind ``gradtape.copy``
    taken = {
        id(function)
        for name, function in functions.items()
        if short[name] in own and name not in ("linalg.cond", "identity")
    }
    found: dict[str, Any] = {}
    for name, function in functions.items():
        if not isinstance(function, gt.core.extend.Op) and id(function) not in taken:
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
