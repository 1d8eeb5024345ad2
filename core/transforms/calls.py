"""One call of a function to differentiate: its arguments, its sources and its result.

If the arguments are complex, the derivative has two complex numbers for each element, unless the
function is holomorphic: then one is zero. A real Jacobian, in pairs of real and imaginary parts,
has both.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from ..base.array_types import describe
from ..base.context import active_tapes, as_converted
from ..base.dtypes import is_differentiable
from ..base.table import ops
from ..base.tree import flatten, outline, pack_like, structure
from ..base.tree import flatten as leaves_of
from ..errors import TraceError
from ..tape.tape import GradientTape
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor
from ..tensors.value_holder import ValueHolder
from ..tensors.variable import Variable
from .vmap import transform_of

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


def real_scalar(value: Any, name: str, tape: GradientTape) -> Tensor:
    """Return a function's result as a tensor, after checking that ``tape`` can differentiate it."""
    result = value.value if isinstance(value, ValueHolder) else value
    if not isinstance(result, Tensor):
        raise TypeError(
            f"{name}: the function must return a tensor, got {type(value).__name__}"
            f"{tape._where_read()}"
        )
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


# -- complex arguments -----------------------------------------------------------------------------


def check_mode(name: str, holomorphic: bool, real: bool) -> None:
    """Raise if both ways of differentiating functions of complex numbers are chosen."""
    if holomorphic and real:
        raise ValueError(
            f"{name}: holomorphic=True and real=True exclude each other: pass real=True for the "
            "derivatives with respect to real and imaginary parts"
        )


def check_arguments(name: str, sources: Sequence[Any], holomorphic: bool) -> None:
    """Raise if one of the arguments is complex; if ``holomorphic`` is true, if one is real."""
    for x in sources:
        if (x.dtype.kind == "c") is holomorphic:
            continue
        given = describe(x.shape, x.dtype)
        if holomorphic:
            raise TypeError(
                f"{name}: with holomorphic=True all arguments to differentiate must be complex, "
                f"got {given}: leave it out, or convert the argument to complex128"
            )
        raise TypeError(
            f"{name}: an argument is complex, {given}, and the derivative of a function that is "
            "not holomorphic has two complex numbers per element: pass real=True for the "
            "derivatives with respect to real and imaginary parts, or holomorphic=True if the "
            "function is holomorphic"
        )


def check_results(name: str, results: Sequence[Any], holomorphic: bool, forward: bool) -> None:
    """Raise if results have another field than the arguments, and so more than one derivative."""
    for y in results:
        kind = getattr(y, "dtype", None)
        if kind is None or (kind.kind == "c") is holomorphic or (forward and not holomorphic):
            continue
        given = describe(y.shape, y.dtype)
        if holomorphic:
            raise TypeError(
                f"{name}: with holomorphic=True all results must be complex, got {given}; a real "
                "function of complex numbers is not holomorphic: pass real=True instead"
            )
        raise TypeError(
            f"{name}: the result of a real argument is complex, {given}, and reverse mode computes "
            "the derivative of its real part alone: pass real=True, or use jacfwd"
        )


def in_real_pairs(
    name: str,
    transform: Callable[..., Any],
    fn: Callable[..., Any],
    argnums: ArgNums,
    has_aux: bool,
    scalar: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes real derivatives, of real and imaginary parts.

    Parameters
    ----------
    name
        Its name, for messages.
    transform
        ``jacrev``, ``jacfwd`` or ``hessian``, for real arguments.
    fn, argnums, has_aux
        As for these.
    scalar
        Whether ``fn`` returns a scalar, and the derivatives are second ones.
    """

    @transform_of(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = Call(name, argnums, args, kwargs)
        for x in call.sources:
            if isinstance(x, Variable) and x.dtype.kind == "c":
                raise TypeError(
                    f"{name}: with real=True, variable {x.name!r} must not be complex: pass its "
                    "value, variable.value"
                )
        likes, told = call.sources, list[Any]()

        def of_pairs(pairs: list[Any]) -> Any:
            call.put([_joined(x, like) for x, like in zip(pairs, likes, strict=True)])
            result, aux = call.run(fn, has_aux)
            told[:] = [result]
            found = result if scalar else [_split(as_tensor(y)) for y in flatten(result)]
            return (found, aux) if has_aux else found

        found = transform(of_pairs, has_aux=has_aux)([_split(x) for x in likes])
        found, *aux = found if has_aux else (found,)
        rows = [call.pack(row) for row in found]
        packed = call.pack(rows) if scalar else pack_like(told[0], rows)
        return (packed, *aux) if has_aux else packed

    return wrapper


def _split(x: Any) -> Any:
    """Return complex numbers as pairs of real ones, in a new last axis."""
    if x.dtype.kind != "c":
        return x
    return ops["stack"](ops["real"](x), ops["imag"](x), axis=-1)


def _joined(pairs: Tensor, like: Any) -> Any:
    return pairs[..., 0] + pairs[..., 1] * 1j if like.dtype.kind == "c" else pairs
