"""What SciPy's and scikit-learn's functions do with gradtape's arrays, row by row.

python tests/standard/consumers.py            # measure all rows, and write consumers.txt
python tests/standard/consumers.py scipy.fft  # print what is measured for some modules, as JSON

A row of ``consumers.txt`` is an outcome, whether the call also works in ``gradtape.function``
(``traced``), and the call. In a call, the names of ``ARRAYS`` are tensors, and ``xp`` is their
namespace. Those in capitals are not differentiated. The outcomes:

``tensors``, ``writable``
    With tensors, or with ``gradtape.writable`` of them, the value is NumPy's, and the gradient that
    of finite differences.
``steps``
    The same, and the derivative is zero: the result counts, orders or chooses.
``numpy``
    The library converts to NumPy's arrays or Python's numbers. The value is right, and a
    ``BrokenPathWarning`` says that the gradient ends.
``nan``
    The gradient is nan, although the derivative exists.
``error``
    It is an error; the column after the call says why.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported

import numpy as np

import gradtape as gt
from gradtape.errors import BrokenPathWarning

TABLE = Path(__file__).with_suffix(".txt")
OUTCOMES = ("tensors", "writable", "steps", "numpy", "nan", "error")
#: Why a call is an error, by what the message contains.
REASONS = {
    "no formula is known": "no formula is known for a derivative",
    "read-only": "writes into the memory of a tensor",
    "compares values to find its result": "a search, whose steps have other derivatives",
    "Multiple namespaces": "combines tensors with NumPy's arrays",
    "is_lazy|bool\\(\\)|a tensor's value is not known": "reads values",
    "no attribute 'strides'|no attribute 'view'": "needs NumPy's memory layout",
    "No matching signature": "its compiled code takes NumPy's arrays only",
    "cannot be assigned to": "assigns to the real part of an array",
    "must be a callable": "takes the names of distributions for NumPy's arrays only",
}
#: The names of submodules that are not loaded with their parents.
_SUBMODULES = (
    "scipy.cluster.hierarchy scipy.cluster.vq scipy.optimize.elementwise scipy.spatial.distance "
    "scipy.spatial.transform sklearn.metrics.pairwise sklearn.utils.extmath"
).split()


def _arrays() -> dict[str, Any]:
    rng = np.random.default_rng(7)

    def between(*shape: int) -> Any:
        return rng.uniform(0.15, 0.95, shape)

    square = between(3, 3)
    return {
        "x": between(6),
        "y": between(6),
        "z": np.linspace(0.2, 0.9, 6) ** 1.2,
        "m": between(4, 3),
        "n": between(4, 3),
        "s": square @ square.T + np.eye(3),
        "image": between(6, 7),
        "small": between(3, 3),
        "long": between(24),
        "t": between(32),
        "b": between(3) + 0.3,
        "a": np.array([1.0, 0.3, 0.1]),
        "c": np.array(0.7),
        "tall": between(12, 3),
        "target": between(12),
        "p": between(6),
        "LABELS": np.arange(42).reshape(6, 7) // 21,
        "CLASSES": np.arange(12) % 3,
        "FIRST": np.array([0, 1, 1, 0, 1, 0]),
        "SECOND": np.array([0, 1, 0, 0, 1, 1]),
        "KNOTS": np.array([0.0, 0, 0, 0, 1, 1, 1, 1]),
        "GRID": np.array([0.0, 0.3, 0.6, 1.0]),
        "SOS": np.array([[0.2, 0.3, 0.1, 1.0, 0.2, 0.05], [0.5, 0.1, 0.2, 1.0, -0.1, 0.2]]),
    }


ARRAYS = _arrays()


class Row(NamedTuple):
    """A row of the table."""

    outcome: str
    traced: bool
    call: str
    reason: str = ""

    def __str__(self) -> str:
        columns = self.outcome, "traced" if self.traced else "-", self.call, self.reason
        return " | ".join(columns).removesuffix(" | ")


def read() -> dict[str, list[Row]]:
    """Return the table: rows by module, such as ``scipy.stats``."""
    found: dict[str, list[Row]] = {}
    for line in TABLE.read_text().splitlines():
        if line.startswith("# "):
            found[line[2:]] = rows = []
        elif line:
            outcome, traced, call, *reason = line.split(" | ")
            rows.append(Row(outcome, traced == "traced", call, *reason))
    return found


# -- one call --------------------------------------------------------------------------------------


def _leaves(result: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of a result."""
    if dataclasses.is_dataclass(result):
        result = [getattr(result, field.name) for field in dataclasses.fields(result)]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from _leaves(part)
    elif result is not None and not isinstance(result, str):
        yield result


def _total(result: Any, xp: Any) -> Any:
    """Return a weighted sum of all elements, to differentiate."""
    total = 0.0
    for leaf in _leaves(result):
        x = xp.asarray(leaf)
        for part in [xp.real(x), xp.imag(x)] if x.dtype.kind == "c" else [x]:
            if part.dtype.kind == "f":
                weights = np.cos(1.0 + np.arange(part.size)).reshape(part.shape)
                total = total + xp.sum(part * weights)
    return total


def _values(result: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in _leaves(result)]


def _same(values: list[Any], wanted: list[Any]) -> bool:
    return len(values) == len(wanted) and all(
        x.shape == y.shape and np.allclose(x, y, rtol=1e-12, atol=1e-13, equal_nan=True)
        for x, y in zip(values, wanted, strict=True)
    )


class Call:
    """A call with arrays of each kind."""

    def __init__(self, module: str, text: str) -> None:
        library, _, name = module.partition(".")
        needed = {name, *re.findall(r"([a-z_]+)\.", text)}
        paths = {part: f"{library}.{part}" for part in needed}
        self._scope = {
            part: importlib.import_module(path)
            for part, path in paths.items()
            if importlib.util.find_spec(path)
        }
        for path in _SUBMODULES:
            if path.partition(".")[2] in text:
                importlib.import_module(path)
        tree = ast.parse(text, mode="eval")
        own = {
            arg.arg
            for node in ast.walk(tree)
            if isinstance(node, ast.Lambda)
            for arg in node.args.args
        }
        used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
        self.names = [x for x in dict.fromkeys(used) if x in ARRAYS and x not in own]
        self.smooth = [x for x in self.names if x.islower()]
        self._code = compile(tree, "<call>", "eval")

    def __call__(self, arrays: dict[str, Any], xp: Any) -> Any:
        return eval(self._code, {**self._scope, "xp": xp, **arrays})

    def of_kind(self, kind: str, tensors: dict[str, Any]) -> Any:
        """Return the result for tensors, or for writable arrays."""
        if kind == "tensors":
            return self(tensors, gt)
        space = gt.writable(0.0).__array_namespace__()
        return self({name: gt.writable(x) for name, x in tensors.items()}, space)

    def slope(self, direction: dict[str, Any]) -> float:
        """Return the derivative of the total in a direction, by differences of NumPy's values."""

        def at(step: float) -> float:
            moved = {name: ARRAYS[name] + step * d for name, d in direction.items()}
            return float(_total(self({**self.arrays, **moved}, np), np))

        h = 1e-4
        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)

    @property
    def arrays(self) -> dict[str, Any]:
        """NumPy's arrays of the call."""
        return {name: ARRAYS[name] for name in self.names}


def _gradient(call: Call, kind: str) -> str:
    """Return what becomes of the gradient."""
    tensors = {name: gt.constant(x) for name, x in call.arrays.items()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with gt.GradientTape() as tape:
            tape.watch([tensors[name] for name in call.smooth])
            total = _total(call.of_kind(kind, tensors), gt)
        found = dict.fromkeys(call.smooth)
        if isinstance(total, gt.Tensor):
            found = tape.gradient(total, {name: tensors[name] for name in call.smooth})
    warned = any(issubclass(x.category, BrokenPathWarning) for x in told)
    rng, flat, right = np.random.default_rng(3), True, True
    for name in call.smooth:
        direction = rng.normal(size=ARRAYS[name].shape)
        wanted = call.slope({name: direction})
        one = found[name]
        got = 0.0 if one is None else float(np.sum(one.numpy() * direction))
        flat = flat and abs(wanted) < 1e-9
        right = right and abs(got - wanted) <= 1e-6 * max(1.0, abs(wanted))
        if np.isnan(got):
            return "nan"
    return "numpy" if warned else "wrong" if not right else "steps" if flat else kind


def _traced(call: Call, kind: str, wanted: list[Any]) -> bool:
    """Return whether the call works in a function that is traced."""

    @gt.function
    def traced(*tensors: Any) -> list[Any]:
        result = call.of_kind(kind, dict(zip(call.names, tensors, strict=True)))
        return [gt.as_tensor(leaf) for leaf in _leaves(result)]

    try:
        return _same(_values(traced(*map(gt.constant, call.arrays.values()))), wanted)
    except Exception:
        return False


def measure(module: str, text: str) -> Row:
    """Return the row of a call, whose outcome is none of the above if something is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call = Call(module, text)
        wanted = _values(call(call.arrays, np))
        for kind in ("tensors", "writable"):
            tensors = {name: gt.constant(x) for name, x in call.arrays.items()}
            try:
                values = _values(call.of_kind(kind, tensors))
                outcome = _gradient(call, kind)
            except Exception as error:
                if kind == "tensors" and "does not change" in str(error):
                    continue
                return Row("error", False, text, _reason(error))
            if outcome == "wrong":
                return Row("wrong", False, text, f"a wrong gradient of {kind} without a warning")
            if not _same(values, wanted):
                return Row("wrong", False, text, f"the values of {kind} differ from NumPy's")
            if any(not np.array_equal(x.numpy(), ARRAYS[name]) for name, x in tensors.items()):
                return Row("wrong", False, text, "an argument changed")
            return Row(outcome, _traced(call, kind, wanted), text)
    return Row("wrong", False, text, "gradtape.writable does not help")


def _reason(error: Exception) -> str:
    known = (text for pattern, text in REASONS.items() if re.search(pattern, str(error)))
    return next(known, f"{type(error).__name__}: {error}".partition("\n")[0][:100])


def measured(modules: list[str]) -> dict[str, list[Row]]:
    """Return the rows of modules as they are measured now."""
    gt.set_default_dtype("float64")
    found = {}
    for library, names in groupby(modules, lambda name: name.partition(".")[0]):
        if library == "sklearn":
            import sklearn

            sklearn.set_config(array_api_dispatch=True)
        for name in names:
            found[name] = [measure(name, row.call) for row in read()[name]]
    return found


if __name__ == "__main__":
    asked = sys.argv[1:]
    found = measured(asked or list(read()))
    if asked:
        print(json.dumps({name: list(map(str, rows)) for name, rows in found.items()}))
    else:
        parts = ["\n".join([f"# {name}", *map(str, rows), ""]) for name, rows in found.items()]
        TABLE.write_text("\n".join(parts))
