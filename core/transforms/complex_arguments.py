"""Jacobians and Hessians of functions of complex numbers.

The derivative of such a function has two complex numbers for each element, unless the function is
holomorphic: then one is zero. A real Jacobian, in pairs of real and imaginary parts, has both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.spec import describe
from ..base.table import ops
from ..base.tree import flatten, pack_like
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .calls import ArgNums, Call
from .vmap import transform_of


def one_of(name: str, holomorphic: bool, real: bool) -> None:
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


def in_pairs(
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
