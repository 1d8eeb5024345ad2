"""The samples of ops and functions, and which public functions there are to have some."""

from __future__ import annotations

import functools
from typing import Any

import gradtape as gt
from gradtape.public import HOMES
from gradtape.testing.backends import as_called
from gradtape.testing.tables import FUNCTIONS, SAMPLES

__all__ = [
    "FUNCTIONS",
    "NOT_SAMPLED",
    "SAMPLES",
    "as_called",
    "composed",
    "public_functions",
]

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
    **dict.fromkeys(
        ("TensorArray", "dynamic_partition", "dynamic_stitch"),
        "it gives or takes several tensors: tests/plugins/families/test_tensor_arrays.py",
    ),
    **{
        f"nn.{name}": "it draws classes: tests/plugins/families/test_sampled_losses.py"
        for name in ("log_uniform_candidates", "nce_loss", "sampled_softmax_loss")
    },
    "writable": "it returns no tensor: tests/standard/test_writable.py",
    "map": "it takes a function: tests/core/test_control.py",
    "broadcast_shapes": "it takes shapes: tests/core/test_standard.py",
    **dict.fromkeys(
        ("ndim", "shape", "size"), "it returns Python numbers: tests/core/test_numpy_names.py"
    ),
    "random.Generator": "a class: tests/plugins/test_random.py",
    "random.set_seed": "it returns nothing: tests/plugins/test_random.py",
}


def public_functions() -> dict[str, Any]:
    """Return the public ops and functions made of ops, by name; other names of them left out."""
    spaces = {f"{name}.": getattr(gt, name) for name in ("fft", "linalg", "nn", "random")}
    # of what stands directly under gradtape, the modules of numbers: no tapes, no transformations
    numbers = (".plugins.ops.", ".core.tensors.numpy_functions", ".core.tensors.array_api")
    paths = [name for name, home in HOMES.items() if home.startswith(numbers) and name[0] != "_"]
    paths += [prefix + name for prefix, module in spaces.items() for name in module.__all__]
    found: dict[str, Any] = {}
    for path in sorted(paths, key=lambda path: (path.count("."), path)):
        function = functools.reduce(getattr, path.split("."), gt)
        home = getattr(function, "__module__", None) or type(function).__module__
        # dtypes, and what is asked of them, are NumPy's own
        own = callable(function) and home.partition(".")[0] == "gradtape"
        if own and function is not gt.finfo:
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
