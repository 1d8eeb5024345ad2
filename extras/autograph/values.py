"""Values of a traced statement's variables: tensors, Python values, or unassigned."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from ..core.errors import TraceError
from ..core.extend import (
    SCALARS,
    Symbol,
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    dims_of,
    flatten,
    is_open,
    is_transformed,
    ops,
    pack_like,
    structure,
    user_line,
)
from ..plugins.ops.control.effects import check
from ..plugins.ops.shapes.creation import zeros


class Undefined:
    """The value of a variable that is not assigned yet."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self) -> Any:
        """Raise, as Python does when a variable is read before it is assigned."""
        traced = active_graph.get() is not None
        advice = ", as far as a trace knows; assign it earlier" if traced else ""
        raise UnboundLocalError(
            f"{user_line()}: {self.name!r} is read before it is assigned{advice}"
        )

    def __repr__(self) -> str:
        return f"<{self.name}: not assigned>"


class UndefinedReturnValue(Undefined):
    """The result of a function that has not returned yet."""

    def __init__(self) -> None:
        super().__init__("the returned value")


class MaybeAssigned(Undefined):
    """A variable that has a value only in runs of the trace that reach its assignment."""

    def __init__(self, name: str, value: Any, assigned: Any) -> None:
        super().__init__(name)
        self.value = value
        self.assigned = assigned

    def read(self) -> Any:
        """Return the value; each run checks that it is assigned."""
        if self.assigned is not True:
            message = f"{short_line()}: {self.name!r} is read before it is assigned"
            check(self.assigned, [], [message], error="UnboundLocalError")
        return self.value


def short_line() -> str:
    """Return FILE:LINE of the user's line, without folders, because graphs store it."""
    file, _, line = user_line().rpartition(":")
    return f"{Path(file).name}:{line}"


def is_traced(value: Any) -> bool:
    """Return whether Python does not know a value: a trace's or batch's, or an unknown size."""
    if isinstance(value, Tensor):
        return is_transformed(value.array)
    return is_open(value) or (isinstance(value, Variable) and active_graph.get() is not None)


def is_number(leaf: Any) -> bool:
    """Return whether an op can carry a leaf."""
    return isinstance(leaf, (Tensor, np.ndarray, np.generic, *SCALARS)) or is_open(leaf)


class Mark:
    """Something that is known of traced tensors, as long as they exist."""

    def __init__(self) -> None:
        self._symbols: WeakValueDictionary[int, Symbol] = WeakValueDictionary()

    def put_on(self, tensor: Tensor) -> Tensor:
        """Mark a tensor, if it is traced, and return it."""
        if type(tensor.array) is Symbol:
            self._symbols[id(tensor.array)] = tensor.array
        return tensor

    def __contains__(self, value: Any) -> bool:
        return isinstance(value, Tensor) and self._symbols.get(id(value.array)) is value.array


_WEAK = Mark()


def is_weak(leaf: Any) -> bool:
    """Return whether a leaf is a Python number, which takes the dtype of the other operand."""
    return type(leaf) in SCALARS or is_open(leaf) or leaf in _WEAK


def weakly(tensor: Tensor) -> Tensor:
    """Mark a tensor as a Python number, which takes the dtype of the other operand."""
    return _WEAK.put_on(tensor)


def is_exact(leaf: Any, dtype: Any) -> bool:
    """Return whether a leaf is a Python number that a dtype does not round."""
    if isinstance(leaf, Tensor):
        return is_weak(leaf)
    if type(leaf) not in (int, float) or not fits(as_tensor(leaf).dtype, dtype, leaf):
        return False
    return bool(dtype.type(leaf) == leaf)


def in_dtype(leaf: Any, dtype: Any) -> Tensor:
    """Return a number as a tensor, in a dtype unless that is None."""
    number = is_weak(leaf) and not isinstance(leaf, Tensor)
    tensor = as_tensor(leaf, dtype) if number else as_tensor(leaf)
    same = dtype is None or tensor.dtype == dtype
    return tensor if same else ops["cast"](tensor, dtype=dtype)


_RANK = {"i": 1, "u": 1, "f": 2, "c": 3}


def fits(narrow: Any, wide: Any, number: Any) -> bool:
    """Return whether a Python number of dtype ``narrow`` may also have dtype ``wide``."""
    ranks = _RANK.get(narrow.kind), _RANK.get(wide.kind)
    if None in ranks or ranks[0] > ranks[1]:  # type: ignore[operator]
        return False
    if type(number) is int and wide.kind in "iu":
        return bool(np.iinfo(wide).min <= number <= np.iinfo(wide).max)
    if type(number) in (int, float) and wide.kind == "f" and math.isfinite(number):
        return bool(abs(number) <= float(np.finfo(wide).max))
    return True


def quoted(name: str) -> str:
    """Return a variable's name in quotes; a description of several words stays unquoted."""
    return name if " " in name else repr(name)


def worded(value: Any) -> str:
    """Return how an error message refers to a value."""
    return "a tensor" if isinstance(value, Tensor) else repr(value)


def same_python(a: Any, b: Any) -> bool:
    """Return whether two Python values are the same, so that no choice is needed."""
    if a is b:
        return True
    if isinstance(a, (Tensor, np.ndarray)) or isinstance(b, (Tensor, np.ndarray)):
        return False
    if type(a) is not type(b) or is_open(a):
        return False
    if type(a) in SCALARS:
        return repr(a) == repr(b)  # 0.0 is not -0.0, and nan is nan
    try:
        return bool(a == b)
    except Exception:  # objects that cannot be compared count as different
        return False


def truth(value: Any, what: str) -> Tensor:
    """Return whether a value is true, as one boolean.

    Raises
    ------
    ValueError
        If it is not one value.
    """
    tensor = as_tensor(value)
    if tensor.shape not in ((), None):
        raise ValueError(
            f"{user_line()}: {what} takes one value, got shape {tensor.shape}; reduce it with "
            "gradtape.all or gradtape.any"
        )
    return tensor if tensor.dtype.kind == "b" else ops["not_equal"](tensor, 0)


def described(leaf: Any) -> tuple[Any, Any]:
    """Return the shape and dtype of a number, which may belong to an already traced branch."""
    if isinstance(leaf, Tensor):
        return leaf.array.shape, leaf.dtype
    tensor = as_tensor(leaf)
    return tensor.shape, tensor.dtype


class Content(NamedTuple):
    """The content of a variable.

    Attributes
    ----------
    value
        A value in any containers; None if the variable is unassigned.
    assigned
        True, False or, for a :class:`MaybeAssigned`, a boolean tensor.
    given
        The variable itself.
    """

    value: Any
    assigned: Any
    given: Any

    @property
    def leaves(self) -> list[Any]:
        """The leaves of the value; empty if it is not assigned."""
        return [] if self.assigned is False else flatten(self.value)


def content_of(value: Any) -> Content:
    """Return what a variable holds."""
    if isinstance(value, MaybeAssigned):
        return Content(value.value, value.assigned, value)
    if isinstance(value, Undefined):
        return Content(None, False, value)
    return Content(value, True, value)


def living(values: Sequence[Any], names: Sequence[str]) -> tuple[Any, ...]:
    """Return variables' values, with :class:`Undefined` for those of an already traced block.

    Nothing reads such variables before they are assigned again: they belong to the block alone.
    """
    pairs = zip(values, names, strict=True)
    return tuple([Undefined(name) if _trace_has_ended(x) else x for x, name in pairs])


def _trace_has_ended(value: Any) -> bool:
    held = content_of(value)
    leaves = [*held.leaves, held.assigned]
    return any(isinstance(x, Tensor) and _ended(x.array) for x in leaves)


def _ended(array: Any) -> bool:
    return is_transformed(array) and array.ended() is not None


class Form(NamedTuple):
    """The form of a future value: its containers, and a shape and dtype for each number.

    Leaves that are not numbers are kept as they are.
    """

    tree: Any
    leaves: tuple[Any, ...]

    @classmethod
    def of(cls, value: Any) -> Form:
        """Return the form of a value."""
        leaves = []
        for leaf in flatten(value):
            if is_number(leaf):
                shape, dtype = described(leaf)
                leaves.append((_without_unknowns(shape), dtype))
            else:
                leaves.append(leaf)
        return cls(value, tuple(leaves))

    def value(self) -> Any:
        """Return zeros of the form."""
        return pack_like(
            self.tree,
            [
                placeholder(*spec) if is_number(leaf) else leaf
                for leaf, spec in zip(flatten(self.tree), self.leaves, strict=True)
            ],
        )


def _without_unknowns(shape: Any) -> Any:
    """Return a shape with 0 instead of sizes that are known only inside a branch."""
    return None if shape is None else tuple(n if _lasts(n) else 0 for n in shape)


def _lasts(n: Any) -> bool:
    if type(n) is int:
        return True
    graph = active_graph.get()
    around = getattr(graph, "parent", None)
    for dim in dims_of(n):
        symbol: Any = dim.symbol
        above = around
        while above is not None and above is not symbol.graph:
            above = above.parent
        if above is None:
            return False
    return True


def placeholder(shape: Any, dtype: Any) -> Tensor:
    """Return zeros, for runs in which the variable has no value."""
    try:
        return zeros(() if shape is None else shape, dtype=dtype)
    except TraceError:
        return zeros(tuple(n if type(n) is int else 0 for n in shape), dtype=dtype)


def same_form(name: str, a: Any, b: Any, what: Sequence[str]) -> None:
    """Raise unless two values have the same containers."""
    if structure(a) != structure(b):
        raise ValueError(
            f"{user_line()}: {name} is {_kind_text(a)} {what[0]}, and {_kind_text(b)} {what[1]}; "
            "give it the same containers in both cases"
        )


def _kind_text(value: Any) -> str:
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, Tensor):
        return "a tensor"
    return "None" if value is None else f"{type(value).__name__} {value!r}"


# -- Python integers in runs: they have 64 bits, and must not wrap ---------------------------------


#: What ops compute with integers of which sums and products of Python integers consist.
_EXACT_INTEGERS = (operator.add, operator.sub, operator.mul, operator.neg)
#: Results below this in ``float64`` fit into ``int64``.
_INTEGER_LIMIT = float(2**63 - 2**10)


def has_exact_integers(op: Any) -> bool:
    """Return whether an op computes as Python's integers do, as long as nothing overflows."""
    return getattr(op, "batch", None) == "elementwise" and op.integers in _EXACT_INTEGERS


def check_integers(carried: Sequence[Tensor], name: str) -> None:
    """Check in each run that the Python integers of a step stay exact.

    Only ops on two values that change from step to step are checked: with a constant, a counter
    would need longer than any run to leave the range.

    Parameters
    ----------
    carried
        The tensors at the start of the step.
    name
        The statement, for the message.
    """
    graph: Any = active_graph.get()
    weak = {id(x.array): x for x in carried if is_weak(x) and x.dtype == np.int64}
    if not weak:
        return
    for node in list(graph.nodes):
        inputs = node.inputs
        plain = [type(x) in SCALARS or id(x) in weak for x in inputs]
        if not has_exact_integers(node.op) or not all(plain):
            continue
        result = node.outputs[0]
        if result.dtype != np.int64:
            continue
        weak[id(result)] = Tensor(result)
        if len(inputs) == 2 and not any(type(x) in SCALARS for x in inputs):
            a, b = (ops["cast"](weak[id(x)], dtype="float64") for x in inputs)
            holds = ops["less"](ops["abs"](node.op(a, b)), _INTEGER_LIMIT)
            message = (
                f"{short_line()}: an integer that {name} carries leaves the range of int64, in "
                "which a trace computes with Python's integers; use floating numbers"
            )
            check(holds, [], [message], error="OverflowError")
