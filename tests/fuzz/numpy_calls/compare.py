"""Comparison of two answers, in shape, dtype and value, or in the kind of error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.numpy_calls.targets import Call
from gradtape.core.extend import Tensor, Variable

__all__ = ["Answer", "answer_of", "answers", "difference", "leaves_of", "quietly", "scale_of"]


@dataclass(frozen=True)
class Answer:
    """The answer to a call: a result or an error."""

    result: Any = None
    error: BaseException | None = None

    def text(self) -> str:
        """Return the answer as text."""
        if self.error is not None:
            said = " ".join(str(self.error).split())
            return f"{type(self.error).__name__}: {said}"
        leaves = list(leaves_of(self.result))
        parts = [_leaf_text(leaf) for leaf in leaves]
        return parts[0] if not isinstance(self.result, (list, tuple)) else f"[{', '.join(parts)}]"


def _leaf_text(leaf: Any) -> str:
    value = _value(leaf)
    if value is None:
        return repr(leaf)
    listed = np.array2string(value, separator=", ", threshold=30).replace("\n", "")
    return f"{value.dtype}{list(value.shape)} {listed}"


def answers(call: Call) -> tuple[Answer, Answer]:
    """Return NumPy's answer and ours."""
    return answer_of(call.in_numpy), answer_of(call.in_gradtape)


@contextmanager
def quietly() -> Iterator[None]:
    """Run without warnings: random numbers divide by zero, which is intended."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def answer_of(run: Callable[[], Any]) -> Answer:
    """Return the answer of a function."""
    try:
        return Answer(run())
    except Exception as error:
        return Answer(error=error)


def leaves_of(value: Any) -> Iterator[Any]:
    """Give the leaves of lists and tuples."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves_of(item)
    else:
        yield value


def _value(leaf: Any) -> Any:
    """Return a leaf as a NumPy array; None if it is not one."""
    if isinstance(leaf, (Tensor, Variable)):
        return np.asarray(leaf.numpy())
    if isinstance(leaf, (np.ndarray, np.generic)):
        return np.asarray(leaf)
    return None


def difference(call: Call, theirs: Answer, ours: Answer) -> str | None:
    """Return the difference between two answers in a few words; None if they are the same."""
    if call.target.name.startswith("np.") and all(x.form != "tensor" for x in call.arrays):
        return None  # only NumPy was called
    if theirs.error is not None:
        if ours.error is None:
            return f"no {_family(theirs.error).__name__}"
        return _error_difference(call, theirs.error, ours.error)
    if ours.error is not None:
        return f"{type(ours.error).__name__} for a result"
    mine, its = list(leaves_of(ours.result)), list(leaves_of(theirs.result))
    if len(mine) != len(its):
        return "number of results"
    scale = None
    for one, other in zip(mine, its):
        a, b = _value(one), _value(other)
        if a is None or b is None:
            if (a is None) != (b is None) and not _plain_alike(one, other):
                return "type of a result"
            if a is None and b is None and not (one == other or (one != one and other != other)):
                return "value"
            continue
        if a.shape != b.shape:
            return "shape"
        if a.dtype != b.dtype:
            return "dtype"
        if a.size and not _identical(a, b):
            if a.dtype.kind not in "fc":
                return "value"
            scale = scale_of(call) if scale is None else scale
            if not _close(a, b, scale):
                return "value"
    return None


def _plain_alike(one: Any, other: Any) -> bool:
    """Return whether one is a Python number and the other an array without axes."""
    try:
        return bool(np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True))
    except (TypeError, ValueError):
        return False


def _identical(a: Any, b: Any) -> bool:
    if a.dtype.kind in "fc":
        same = (a == b) | ((a != a) & (b != b))
        return bool(same.all())
    return bool((a == b).all())


def scale_of(call: Call) -> float:
    """Return the size of a call's numbers, to which rounding is relative."""
    most, count = 1.0, 1
    for array in call.arrays:
        values = array.values
        if values.dtype.kind in "biufc" and values.size:
            sizes = np.abs(values.astype("complex128" if values.dtype.kind == "c" else "float64"))
            sizes = sizes[np.isfinite(sizes)]
            if sizes.size:
                most = max(most, float(sizes.max()))
            count = max(count, values.size)
    return most * count


def _close(a: Any, b: Any, scale: float) -> bool:
    """Return whether values agree up to rounding."""
    eps = float(np.finfo(a.dtype).eps)
    with np.errstate(all="ignore"):
        wide = "complex128" if a.dtype.kind == "c" else "float64"
        x, y = a.astype(wide), b.astype(wide)
        near = np.abs(x - y) <= 64 * eps * (np.abs(y) + scale)
        fine = near | (x == y) | ((x != x) & (y != y))
        if not fine.all() and a.dtype.kind == "c":
            fine |= _parts_fine(x, y, 64 * eps, scale)
    return bool(fine.all())


def _parts_fine(x: Any, y: Any, eps: float, scale: float) -> Any:
    """Return where complex values agree in each part, as needed for infinities."""
    fine = np.ones(x.shape, bool)
    for p, q in ((x.real, y.real), (x.imag, y.imag)):
        fine &= (np.abs(p - q) <= eps * (np.abs(q) + scale)) | (p == q) | ((p != p) & (q != q))
    return fine


# -- errors ----------------------------------------------------------------------------------------


def _family(error: BaseException) -> type[BaseException]:
    """Return the class by which users catch a NumPy error: the nearest public one."""
    public = (np.exceptions.AxisError, np.linalg.LinAlgError)
    for kind in type(error).__mro__:
        if kind in public or kind.__module__ == "builtins":
            return kind
    return Exception


def _error_difference(call: Call, theirs: BaseException, ours: BaseException) -> str | None:
    family = _family(theirs)
    if not isinstance(ours, family):
        return f"{type(ours).__name__}, not {family.__name__}"
    said = str(ours).lower()
    if not said.strip():
        return "an error without words"
    if str(ours) == str(theirs) and call.target.name.startswith("np."):
        return None  # NumPy's own error, before it calls a tensor's method
    return None if _names(call, said) else "an error that names no op"


def _names(call: Call, said: str) -> bool:
    """Return whether a message names its function."""
    name = call.target.function.rpartition(".")[2].lower()
    if name.lstrip("arc") in said or "{" in name:
        return True
    head = said.partition(":")[0].partition("(")[0].replace("numpy.", "").replace(".", "_")
    return head.isidentifier()
