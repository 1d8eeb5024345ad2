"""Gradients as optimizers get them, and the options of every optimizer besides its formula.

They are clipping, decay, averages and gradient accumulation. An attribute that nothing reads, such
as ``lr``, gives a warning.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import unwrap
from numbers import Real
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import (
    Module,
    Tensor,
    Variable,
    as_tensor,
    constant,
    has_unknown_sizes,
    in_precision,
    numpy_dtype,
    ops,
    warn_user,
)

# by its public name: training does not know which plugin provides it
from ...nn import clip_by_norm
from ...plugins.ops.linalg.norms import clip_norms
from ..names import nearest
from .rules import by_blocks, returned

if TYPE_CHECKING:
    from typing import TypedDict

    class Clipping(TypedDict, total=False):
        """The arguments for clipping, for signatures that pass them on."""

        clipnorm: float | None
        clipvalue: float | None
        global_clipnorm: float | None

    class MoreOptions(Clipping, total=False):
        """The arguments of all optimizers except the weight decay."""

        use_ema: bool
        ema_momentum: float
        ema_overwrite_frequency: int | None
        gradient_accumulation_steps: int | None

    class Options(MoreOptions, total=False):
        """The arguments of all optimizers, for signatures that pass them on."""

        weight_decay: float | None


__all__ = [
    "AVERAGES",
    "CLIPPING",
    "OF_AVERAGES",
    "OPTIONS",
    "SUMS",
    "above_zero",
    "add",
    "check_clipping",
    "check_options",
    "checked",
    "clip_by_global_norm",
    "clipped",
    "decays",
    "global_norm",
    "sizes",
    "warn_of_name",
    "with_options",
]


def list_of_variables(variables: Any) -> list[Variable]:
    """Return the variables that ``minimize`` got: a list, or a function that returns one.

    Raises
    ------
    TypeError
        If they are anything else.
    """
    if isinstance(variables, Module):
        raise TypeError("minimize: pass model.trainable_variables instead of the model")
    found = variables() if callable(variables) else variables
    if isinstance(found, Variable):
        raise TypeError("minimize: variables are a list; write [variable]")
    found = list(found)
    other = next((x for x in found if not isinstance(x, Variable)), None)
    if other is not None:
        raise TypeError(f"minimize: expected variables, got {type(other).__name__}")
    return found


def checked(gradient: Any, variable: Any) -> Any:
    """Return a gradient as an array (in a trace, a symbol) of its variable's shape and dtype."""
    if type(gradient) is Tensor and isinstance(variable, Variable):  # a fast path
        array, own = gradient.array, variable.array
        shape = array.shape
        if array.dtype is own.dtype and not has_unknown_sizes(shape) and shape == own.shape:
            return array
    if not isinstance(variable, Variable):
        raise TypeError(
            f"apply_gradients: expected pairs (gradient, variable), got {type(variable).__name__} "
            "instead of a variable"
        )
    if type(gradient) is not Tensor:
        if gradient is None:
            raise ValueError(
                f"apply_gradients: the gradient of variable {variable.name!r} (shape "
                f"{variable.shape}) is None: the target does not depend on it in a differentiable "
                "way. tape.explain(target, variable) says why; leave the variable out if this is "
                "intended"
            )
        gradient = as_tensor(gradient)
    array = gradient.array
    if has_unknown_sizes(array.shape) or array.shape != variable.array.shape:
        raise ValueError(
            f"apply_gradients: the gradient of variable {variable.name!r} has shape {array.shape}, "
            f"but the variable has shape {variable.shape}"
        )
    if array.dtype is not variable.array.dtype and array.dtype != variable.array.dtype:
        array = gradient.astype(variable.dtype).array
    return array


# -- clipping -------------------------------------------------------------------------------------

#: The optimizers' arguments for clipping.
CLIPPING = ("clipnorm", "clipvalue", "global_clipnorm")


def global_norm(tensors: Sequence[Any]) -> Tensor:
    """Return the Euclidean norm of all elements of several tensors.

    Parameters
    ----------
    tensors
        Tensors of any shapes; entries that are ``None`` are skipped.

    Returns
    -------
    A scalar, 0 if there are no tensors. For ``float16``, it is ``float32``.

    Raises
    ------
    TypeError
        If an entry is not numeric.

    Examples
    --------
    >>> gt.training.global_norm([[3.0], None, [[4.0]]]).item()
    5.0
    """
    # norms, not sums of squares: those could overflow, and dividing by infinity would give zeros
    given = [in_precision(as_tensor(t), "float32") for t in tensors if t is not None]
    norms = [ops["norm"](t, axis=None) for t in given]
    if not norms:
        return constant(0.0)
    return norms[0] if len(norms) == 1 else ops["norm"](ops["stack"](*norms, axis=0), axis=None)


def clip_by_global_norm(
    tensors: Sequence[Any], clip_norm: Any, norm: Any = None
) -> tuple[list[Any], Tensor]:
    """Return tensors, scaled down together if their norm is larger than ``clip_norm``.

    Parameters
    ----------
    tensors
        Tensors of any shapes; entries that are ``None`` remain ``None``.
    clip_norm
        The largest norm, above 0.
    norm
        Their :func:`global_norm`, if it is known.

    Returns
    -------
    The scaled tensors in a list, and their norm before scaling, which may be infinite: the tensors
    are right even then.

    References
    ----------
    R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural networks",
    ICML 2013.

    Raises
    ------
    TypeError
        If an entry, or a norm, is not numeric.

    Examples
    --------
    >>> parts, norm = gt.training.clip_by_global_norm([[3.0], [4.0]], 1.0)
    >>> [round(part.item(), 3) for part in parts], norm.item()
    ([0.6, 0.8], 5.0)
    """
    places = [i for i, t in enumerate(tensors) if t is not None]
    given = [as_tensor(tensors[i]) for i in places]
    if norm is None:
        shortened, size = clip_norms(given, clip_norm, global_norm)
    else:
        size = as_tensor(norm)
        ratio = ops["maximum"](size, clip_norm) / clip_norm
        shortened = [(t / ratio).astype(t.dtype) for t in given]
    found: list[Any] = [None] * len(tensors)
    for i, t in zip(places, shortened, strict=True):
        found[i] = t
    return found, size


def check_clipping(optimizer: str, *sizes: float | None) -> dict[str, float]:
    """Return the arguments in :data:`CLIPPING` that are set, by name.

    Raises
    ------
    ValueError
        If more than one is set, or a size is not above 0.
    """
    given = {option: x for option, x in zip(CLIPPING, sizes, strict=True) if x is not None}
    sized = all(isinstance(size, Real) and size > 0 for size in given.values())
    if len(given) > 1 or not sized:
        raise ValueError(
            f"{optimizer}: set at most one of {', '.join(CLIPPING)}, to a number above 0, "
            f"got {given}"
        )
    return {option: float(size) for option, size in given.items()}


def clipped(
    gradients: Sequence[Any],
    clipnorm: float | None,
    clipvalue: float | None,
    global_clipnorm: float | None,
) -> list[Any]:
    """Return gradients, clipped as the argument that is set says."""
    if clipnorm is not None:
        return [clip_by_norm(g, clipnorm) for g in gradients]
    if clipvalue is not None:
        return [ops["clip"](g, -clipvalue, clipvalue) for g in gradients]
    if global_clipnorm is not None:
        return clip_by_global_norm(gradients, global_clipnorm)[0]
    return list(gradients)


#: The optimizers' arguments besides those of their formulas. Files hold those that are set.
OPTIONS = (
    *CLIPPING,
    "weight_decay",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "gradient_accumulation_steps",
)
#: Those that say how to average weights.
OF_AVERAGES = ("ema_momentum", "ema_overwrite_frequency")
#: The slots that options add after those of a formula.
AVERAGES, SUMS = "weight_averages", "gradient_sums"


def check_options(optimizer: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options, by name, as Python numbers.

    Parameters
    ----------
    optimizer
        The name of the class.
    given
        All options.

    Raises
    ------
    ValueError
        If an option is out of its range.
    TypeError
        If an option is not a number.
    """
    check_clipping(optimizer, *(given[option] for option in CLIPPING))
    found: dict[str, Any] = {}
    for option in OPTIONS:
        value = given[option]
        if option == "use_ema":
            value = bool(value)
        elif value is not None and option in _COUNTS:
            value = _count(optimizer, option, value, _COUNTS[option])
        elif value is not None or option == "ema_momentum":
            value = _number(optimizer, option, value)
        found[option] = value
    decay, momentum = found["weight_decay"] or 0.0, found["ema_momentum"]
    if not 0.0 <= decay < float("inf"):
        raise ValueError(f"{optimizer}: weight_decay must not be negative, got {decay}")
    if not 0.0 <= momentum <= 1.0:
        raise ValueError(f"{optimizer}: ema_momentum must be in [0, 1], got {momentum}")
    return found


def _number(optimizer: str, option: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{optimizer}: {option} must be a number, got {value!r}") from None


#: The default decay of averages of weights.
EMA_MOMENTUM = 0.99
#: The least values of options that are counts.
_COUNTS = {"ema_overwrite_frequency": 1, "gradient_accumulation_steps": 2}


def _count(optimizer: str, option: str, value: Any, least: int) -> int:
    number = operator.index(value) if hasattr(value, "__index__") else 0
    if isinstance(value, bool) or number < least:
        raise ValueError(
            f"{optimizer}: {option} must be an integer of at least {least}, or None, got {value!r}"
        )
    return number


def decays(optimizer: Any, **given: float) -> list[float]:
    """Return settings as floats; raise if one is not in ``[0, 1)``."""
    return _floats(optimizer, given, "be in [0, 1)", lambda value: 0.0 <= value < 1.0)


def sizes(optimizer: Any, **given: float) -> list[float]:
    """Return settings as floats; raise if one is negative or NaN."""
    return _floats(optimizer, given, "not be negative", lambda value: value >= 0.0)


def above_zero(epsilon: float, dtype: Any) -> float:
    """Return what is added to denominators, or the least number if that is 0 in a dtype.

    A gradient that is 0 throughout then changes nothing, instead of giving NaN.
    """
    return _above_zero(epsilon, numpy_dtype(dtype))


@functools.cache  # by NumPy's dtypes only: other libraries' may warn of comparisons with these
def _above_zero(epsilon: float, dtype: np.dtype[Any]) -> float:
    limits = np.finfo(dtype)
    least = limits.tiny if limits.bits > 16 else limits.smallest_subnormal
    return max(epsilon, float(least))


def _floats(optimizer: Any, given: dict[str, float], must: str, right: Any) -> list[float]:
    for argument, value in given.items():
        if not right(value):
            raise ValueError(f"{type(optimizer).__name__}: {argument} must {must}, got {value!r}")
    return [float(value) for value in given.values()]


def with_options(
    update: Callable[..., Any], decays: bool, decay: bool, average: bool
) -> Callable[..., Any]:
    """Return an optimizer's ``update``, extended by the options.

    Parameters
    ----------
    update
        The formula.
    decays
        Whether these variables decay.
    decay, average
        Whether the formula's settings are followed by those of weight decay and of averages. With
        ``average``, the average is the last element of the state.

    Returns
    -------
    callable
        Elementwise if the formula is.
    """
    if not (decay or average):
        return update

    def updated(
        value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        *numbers, last = settings
        share = last if average else None
        shrink = last if not average else numbers.pop() if decay else None
        if decays:
            value = value - value * shrink
        if not average:
            new, changed = returned(update(value, gradient, state, tuple(numbers)), state)
            return new, tuple(changed)
        *own, mean = state
        new, changed = returned(update(value, gradient, own, tuple(numbers)), own)
        return new, (*changed, mean + (new - mean) * share)

    return by_blocks(updated) if getattr(update, "by_blocks", False) else updated


@by_blocks
def add(
    value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
) -> tuple[Any, tuple[Any, ...]]:
    """Add a gradient to a sum: an ``update`` for sums of gradients."""
    return value + gradient, ()


def first_or(step: Any, later: float) -> Any:
    """Return 1 for the first step and ``later`` for others; the step may be traced."""
    if isinstance(step, Tensor):
        return ops["where"](step > 1.0, later, 1.0)
    return later if step > 1 else 1.0


# -- attributes that nothing reads, such as lr ----------------------------------------------------

#: Other libraries' names, and what they are here.
_ELSEWHERE = {
    "alpha": "learning_rate",
    "betas": "beta_1 and beta_2",
    "decay": "weight_decay",
    "eps": "epsilon",
    "eta": "learning_rate",
    "lr": "learning_rate",
    "param_groups": "learning_rate",
    "wd": "weight_decay",
}


def warn_of_name(optimizer: Any, name: str) -> None:
    """Warn if a new attribute resembles a setting, and is set from outside the optimizer.

    Parameters
    ----------
    optimizer
        The optimizer. What its own methods set is never meant otherwise.
    name
        The name of the attribute.
    """
    if name.startswith("_") or _is_own(optimizer):
        return
    held = [x for x in vars(optimizer) if not x.startswith("_") and x not in optimizer.slots]
    known = [*dict.fromkeys([*held, *OPTIONS])]
    meant = _ELSEWHERE.get(name) or nearest(name, known)
    if meant is None and name not in _arguments_of_all(type(optimizer)):
        return
    if any(name in (*code.co_names, *code.co_consts) for code in _code_of(type(optimizer))):
        return  # the formula reads it
    hint = "" if meant is None else f" Did you mean {meant}?"
    warn_user(
        f"{type(optimizer).__name__} has no attribute {name!r}, so setting it has no effect on the "
        f"steps.{hint} It has {', '.join(known)}",
        UserWarning,
    )


def _root(kind: Any) -> Any:
    """Return the base class of all optimizers."""
    return next(x for x in reversed(kind.__mro__) if "_arguments" in vars(x))


def _code_of(kind: Any) -> Iterator[CodeType]:
    """Yield the code of the methods that a class adds to the base class."""
    added = kind.__mro__[: kind.__mro__.index(_root(kind))]
    for method in [x for found in added for x in vars(found).values()]:
        function = getattr(method, "fget", None) or getattr(method, "__func__", method)
        waiting = [getattr(unwrap(function), "__code__", None)]
        for code in waiting:  # grows in the loop
            if isinstance(code, CodeType):
                waiting += [x for x in code.co_consts if isinstance(x, CodeType)]
                yield code


def _arguments_of_all(kind: Any) -> set[str]:
    """Return the settings of all classes of optimizers."""
    waiting = [_root(kind)]
    for found in waiting:  # grows in the loop
        waiting += found.__subclasses__()
    return {name for found in waiting for name in vars(found).get("_arguments", ())}


def _is_own(optimizer: Any) -> bool:
    """Return whether the attribute is set by a method of the optimizer."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name == "__setattr__":
        frame = frame.f_back
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return bool(names) and frame.f_locals.get(names[0]) is optimizer
