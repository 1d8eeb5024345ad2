"""The formula of an optimizer whose class readers do not know, as functions of a file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

from ...core.extend import (
    ConcreteFunction,
    Function,
    Module,
    RestoredFunction,
    TensorSpec,
)
from ...hints import Lacking
from ...training import Optimizer, optimizers
from ..errors import SaveError
from ..records.loaded_optimizer import RATE, LoadedOptimizer, check_formula
from ..records.manifest import OptimizerRecord
from .traces import SavedFunction, reason_of

#: What a class may define itself: the file holds what it computes, or has no use for it.
_CARRIED = ("update", "settings", "get_config", "from_config")
#: The slots that options add.
_OF_OPTIONS = (optimizers.options.AVERAGES, optimizers.options.SUMS)
_ADVICE = (
    "Let a plugin provide the class, so that files name it (gradtape_modules); or save the model "
    "without its optimizer, and continue runs from a gradtape.training.Checkpoint; or save only "
    "the state: functions=False"
)


def formula_of(optimizer: Optimizer, where: str) -> list[SavedFunction]:
    """Return the functions of an optimizer: its settings, its update and perhaps its rate.

    Raises
    ------
    SaveError
        If they cannot be traced, or the class does more in a step than compute a formula.
    """
    found = []
    rate = vars(optimizer).get(RATE)  # unlike a read, it is not noted as one of the formula
    if callable(rate) and not isinstance(rate, (Module, RestoredFunction)):
        found.append(trace_rate(rate, f"{where}: {RATE}")._replace(name=RATE))
    if isinstance(optimizer, LoadedOptimizer):
        return found
    if own := _beyond(type(optimizer)):
        raise SaveError(
            f"{where} overrides {', '.join(own)}: a file holds the formula of an optimizer "
            f"(update, settings) as graphs, but not how it does a step otherwise. {_ADVICE}"
        )
    settings = _settings(optimizer, where)
    update = _update(optimizer, where, len(settings.concrete[0].results))
    try:
        slots, elementwise = _own_slots(optimizer), _is_elementwise(optimizer)
        check_formula(settings.concrete, update.concrete, slots, elementwise)
    except ValueError as error:  # readers would refuse it
        raise SaveError(f"{where}: {error}. {_ADVICE}") from None
    return [*found, settings, update]


def trace_rate(rate: Any, where: str) -> SavedFunction:
    """Trace a learning rate that is a function: steps call it with their numbers.

    Raises
    ------
    SaveError
        If it cannot be traced.
    """
    if isinstance(rate, RestoredFunction):
        traces = rate.concrete_functions
        return SavedFunction(rate.name, where, rate.signature, traces, rate, rate.sizes)
    traced = rate if isinstance(rate, Function) else Function(rate)
    try:
        concrete = traced.get_concrete_function(TensorSpec((), "int64"))
    except Exception as error:
        raise SaveError(
            f"{where}: {rate!r} cannot be traced: {reason_of(error)}; compute it with gradtape's "
            "functions, such as gradtape.where"
        ) from error
    name = getattr(rate, "__name__", type(rate).__name__)
    return SavedFunction(name, where, traced.signature, [concrete], rate)


def record_of(optimizer: Optimizer, where: str) -> OptimizerRecord:
    """Return the record of an optimizer whose class readers do not know."""
    options = optimizers.options
    try:
        given = {x: getattr(optimizer, x) for x in options.OPTIONS}
        options.check_options(where, given)
        excluded = optimizer._gradtape_excluded.config()
    except (ValueError, TypeError) as error:
        raise SaveError(f"{where}: {error}") from None
    return OptimizerRecord(elementwise=_is_elementwise(optimizer), excluded=excluded)


def _beyond(cls: type[Optimizer]) -> list[str]:
    """Return what a class overrides of the optimizers' base class, besides the formula."""
    base = [x for x in Optimizer.__mro__ if x is not object]
    steps = {
        name
        for known in base
        for name, value in vars(known).items()
        if callable(value) or hasattr(value, "__get__")
        if not (name.startswith("__") or isinstance(value, Lacking))
    }
    own = [known for known in cls.__mro__ if known not in Optimizer.__mro__]
    harmless = (*_CARRIED, *cls.same_step)
    return sorted({x for known in own for x in vars(known) if x in steps and x not in harmless})


def _settings(optimizer: Optimizer, where: str) -> SavedFunction:
    original, numbers = optimizer.settings, (TensorSpec((), "float64"),) * 2
    where = f"{where}.settings"
    try:
        concrete = Function(original, name="settings").get_concrete_function(*numbers)
    except Exception as error:
        raise SaveError(f"{where} cannot be traced: {reason_of(error)}. {_ADVICE}") from error
    if type(concrete.results) is not tuple:
        raise SaveError(f"{where} must return a tuple, got {type(concrete.results).__name__}")
    return SavedFunction("settings", where, inspect.signature(original), [concrete], original)


def _update(optimizer: Optimizer, where: str, count: int) -> SavedFunction:
    original, where = _in_tuples(optimizer.update), f"{where}.update"
    function = Function(original, name="update")
    slots, elementwise = _own_slots(optimizer), _is_elementwise(optimizer)
    trained = optimizer.trained
    shapes: dict[Any, list[Any]] = {"float32": []}
    for variable in trained:
        shapes.setdefault(variable.dtype.name, []).append(variable.shape)
    concrete: list[ConcreteFunction] = []
    for dtype, seen in shapes.items():
        found = None
        error: Exception | None = None
        for choice in _choices(seen, elementwise):
            try:
                found = [_traced(function, shape, dtype, slots, count) for shape in choice]
                break
            except Exception as reason:
                error = reason
        if found is None and (seen or not trained):
            hint = "" if trained else "Do a step first, which shows the shapes of variables. "
            raise SaveError(
                f"{where} cannot be traced: {reason_of(error)}. {hint}{_ADVICE}"
            ) from error
        concrete += found or ()
    return SavedFunction("update", where, inspect.signature(original), concrete, original)


def _own_slots(optimizer: Optimizer) -> int:
    """Return how many states the formula of an optimizer takes, without those of options."""
    return len([x for x in optimizer.slots if x not in _OF_OPTIONS])


def _is_elementwise(optimizer: Optimizer) -> bool:
    return bool(getattr(optimizer.update, "by_blocks", False))


def _in_tuples(update: Callable[..., Any]) -> Callable[..., Any]:
    """Return a formula that returns tuples, where steps take lists too."""

    @wraps(update)
    def in_tuples(value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        new, changed = optimizers.rules.returned(update(value, gradient, state, settings), state)
        return new, tuple(changed)

    return in_tuples


def _choices(seen: Sequence[Any], elementwise: bool) -> Iterator[list[Any]]:
    """Yield shapes to trace a formula for, the most general first."""
    if elementwise:  # any row
        yield [("n",)]
        return
    yield [None]
    if seen:
        yield list(dict.fromkeys(tuple([f"n{i}" for i in range(len(x))]) for x in seen))
        yield list(dict.fromkeys(seen))


def _traced(
    function: Function[..., Any], shape: Any, dtype: str, slots: int, count: int
) -> ConcreteFunction:
    like, number = TensorSpec(shape, dtype), TensorSpec((), dtype)
    return function.get_concrete_function(like, like, (like,) * slots, (number,) * count)
