"""One call of a function to differentiate: its arguments, its sources and its result."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from ..base.context import active_tapes, as_converted
from ..base.dtypes import is_differentiable
from ..base.table import ops
from ..base.tree import flatten as leaves_of
from ..base.tree import outline, pack_like, structure
from ..errors import TraceError
from ..tape.tape import GradientTape
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable

Function = Callable[..., Any]
ArgNums = int | str | Sequence[int | str]
P = ParamSpec("P")
R = TypeVar("R")


class Call:
    """A call of a function, and the arguments to differentiate with respect to.

    Attributes
    ----------
    chosen
        These arguments as the caller passed them: one, or a tuple.
    sources
        Their leaves as tensors with new identities, or as the variables that they are.
    """

    def __init__(self, name: str, argnums: ArgNums, args: Any, kwargs: Any) -> None:
        self.args, self.kwargs = list(args), dict(kwargs)
        self.sources: list[Any]
        self.chosen: Any
        if argnums == 0 and type(argnums) is int and args and type(args[0]) is Tensor:
            self.chosen = args[0]  # a shortcut for the most common call
            self.sources = [_source(args[0], name, 0)]
            self.args[0] = self.sources[0]
            self._places: list[tuple[Any, Any, Any]] = [(self.args, 0, args[0])]
            return
        chosen: Any = argnums
        single = isinstance(chosen, str) or not hasattr(chosen, "__iter__")
        keys = [_argument_key(key, name) for key in ([chosen] if single else chosen)]
        for key in keys:
            if isinstance(key, str) and key not in self.kwargs:
                raise TypeError(f"{name}: argnums names {key!r}, which was not passed by keyword")
            if not isinstance(key, str) and not -len(args) <= key < len(args):
                raise TypeError(
                    f"{name}: argnums is {argnums}, but there are {len(args)} positional arguments"
                )
        if not keys:
            raise ValueError(f"{name}: argnums is empty; name at least one argument")
        places = [key if isinstance(key, str) else key % len(args) for key in keys]
        if len(set(places)) < len(places):
            raise ValueError(f"{name}: argnums names an argument twice: {argnums}")
        self.sources = []
        self._places = []
        found = []
        for key in keys:
            container: Any = self.kwargs if isinstance(key, str) else self.args
            tree = container[key]
            self.sources += [_source(leaf, name, key) for leaf in leaves_of(tree)]
            self._places.append((container, key, tree))
            found.append(tree)
        self.put(self.sources)
        own = [x.id for x in self.sources if isinstance(x, Variable)]
        if len(set(own)) < len(own):
            raise ValueError(
                f"{name}: a variable is passed twice; pass variable.value instead to get a "
                "derivative for each argument"
            )
        self.chosen = found[0] if single else tuple(found)

    def put(self, leaves: Sequence[Any]) -> None:
        """Pass other leaves to the function, as many as there are sources."""
        rest = iter(leaves)
        for container, key, tree in self._places:
            container[key] = pack_like(tree, [next(rest) for _ in leaves_of(tree)])

    def run(self, fn: Function, has_aux: bool = False) -> tuple[Any, Any]:
        """Return the function's result, and its auxiliary result or None."""
        result = as_converted(fn)(*self.args, **self.kwargs)
        if not has_aux:
            return result, None
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError("with has_aux, the function must return a pair (result, auxiliary)")
        return result

    def pack(self, leaves: Sequence[Any]) -> Any:
        """Return the results, one per source, in the structure of the arguments."""
        return pack_like(self.chosen, list(leaves))


def _argument_key(key: Any, name: str) -> int | str:
    if isinstance(key, str):
        return key
    try:
        if isinstance(key, bool):
            raise TypeError
        return operator.index(key)
    except TypeError:
        raise TypeError(
            f"{name}: argnums must be an argument's position or name, or several of them, got "
            f"{key!r}"
        ) from None


def _source(leaf: Any, name: str, key: Any) -> Any:
    if isinstance(leaf, Variable):
        tensor: Any = leaf
    elif leaf is None:
        raise TypeError(
            f"{name}: argument {key!r} holds None, which has no derivative; remove it, or choose "
            "other arguments with argnums"
        )
    else:
        tensor = as_tensor(leaf)
        if is_differentiable(tensor.dtype):
            # a new tensor: if the function also captures the original, that one is a constant
            alone = not active_tapes.get()
            tensor = Tensor(tensor.array) if alone else ops["identity"](tensor)
    if not is_differentiable(tensor.dtype):
        raise TypeError(
            f"{name}: argument {key!r} holds {tensor.dtype} values, which have no derivative; "
            + (
                "pass floating ones, or bind them with functools.partial(fn, ...)"
                if name in ("jvp", "vjp", "linearize", "hvp")
                else "pass floating ones, or choose other arguments with argnums"
            )
        )
    return tensor


def real_scalar(value: Any, name: str) -> Tensor:
    result = value.value if isinstance(value, Variable) else value
    if not isinstance(result, Tensor):
        raise TypeError(f"{name}: the function must return a tensor, got {type(value).__name__}")
    if result.dtype.kind != "f":
        kind = "complex" if result.dtype.kind == "c" else f"{result.dtype}"
        raise TypeError(
            f"{name}: the function must return a real, floating scalar, got a {kind} one; take its "
            "real part or its abs(), or use GradientTape, which follows TensorFlow's convention "
            "for complex targets"
        )
    if result.shape not in ((), None):
        raise TypeError(
            f"{name}: the function must return a scalar, got shape {result.shape}; use jacobian, "
            "or reduce the result with sum or mean"
        )
    return result


def tape_of(persistent: bool = False, strict: bool = False) -> GradientTape:
    return GradientTape(persistent, watch_accessed_variables=False, strict=strict)


def same_structure(name: str, what: str, got: Any, other: str, want: Any) -> None:
    if structure(got) != structure(want):
        raise ValueError(
            f"{name}: {what} must have the structure of {other}, {outline(want)}, got "
            f"{outline(got)}"
        )


def sizes_of(source: Any, name: str) -> tuple[Any, ...]:
    shape = source.shape
    if shape is None:
        raise TraceError(f"{name}: the rank of an argument is unknown in this trace")
    return tuple(shape)
