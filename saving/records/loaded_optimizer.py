"""``LoadedOptimizer``: an optimizer whose class is not known here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from ...core.extend import (
    ConcreteFunction,
    Module,
    Output,
    RestoredFunction,
    Tensor,
    TensorSpec,
    Variable,
    as_tensor,
    numpy_dtype,
    shapes_differ,
)
from ...training import Optimizer, optimizers
from .loaded import LoadedModule
from .schema import is_attribute

__all__ = ["FORMULA", "RATE", "FormulaChecks", "LoadedOptimizer", "check_formula"]

#: The functions that an optimizer of a file cannot do without.
FORMULA = ("settings", "update")
#: The function of a learning rate that is neither a variable nor a module.
RATE = "learning_rate"
_ELEMENTWISE = "_gradtape_elementwise"


class LoadedOptimizer(Optimizer, LoadedModule):
    """An optimizer whose class is not known here: its formula runs as graphs.

    Clipping, weight decay, averages and gradient accumulation are those of every optimizer. The
    learning rate and these options can be set. Attributes that the formula has read cannot.
    """

    def __init__(
        self,
        name: str,
        class_name: str,
        untraced: Mapping[str, str],
        ordered: bool = False,
        elementwise: bool = False,
    ) -> None:
        LoadedModule.__init__(self, name, class_name, untraced, ordered)
        vars(self)[_ELEMENTWISE] = elementwise
        vars(self).update(
            _gradtape_excluded=optimizers.decay.Excluded(),
            _gradtape_places={},
            _gradtape_claims=[],
            _gradtape_read={},
            _gradtape_groups={},
        )

    # what users may call attributes of their own is not called so here: no file could hold these

    @property
    def settings(self) -> Any:
        """The function that returns the numbers of one step."""
        return partial(_numbers, vars(self)["settings"])

    @property
    def update(self) -> Any:
        """The function that returns the new value and the new state."""
        formula = vars(self)["update"]
        if vars(self)[_ELEMENTWISE]:
            return optimizers.by_blocks(lambda *given: _row_wise(formula, *given))
        return partial(_as_tensors, formula)


class FormulaChecks:
    """Checks the optimizers of a file, which is not trusted.

    Many may share a function, which may have many traces: each is checked once.
    """

    def __init__(self) -> None:
        #: What is known of a function: the numbers of settings that its traces return or take.
        self._known: dict[Any, frozenset[int]] = {}

    def check(self, optimizer: LoadedOptimizer, excluded: Any) -> None:
        """Check what a file set.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is not an optimizer.
        """
        found, options = vars(optimizer), optimizers.options
        _check_scalar(found.get("iterations"), "iterations", "i")
        rate = found.get("learning_rate")
        if not isinstance(rate, (RestoredFunction, Module)):
            _check_scalar(rate, "learning_rate", "f")
        for name in FORMULA:
            if not isinstance(found.get(name), RestoredFunction):
                raise ValueError(f"{name!r} is not a function")
        slots = _check_slots(found)
        _check_options(optimizer)
        for slot, option in (
            (options.AVERAGES, "use_ema"),
            (options.SUMS, "gradient_accumulation_steps"),
        ):
            if (slot in slots) != bool(getattr(optimizer, option)):
                raise ValueError(f"{option} does not fit the slots {slots}")
        added = (options.AVERAGES, options.SUMS)
        self._check_formula(found, len([slot for slot in slots if slot not in added]))
        if excluded is not None:
            optimizer._gradtape_excluded.load(excluded)

    def _check_formula(self, found: Mapping[str, Any], held: int) -> None:
        """Check what the functions of an optimizer with so many slots take and return."""
        rate, elementwise = found[RATE], found[_ELEMENTWISE]
        returned = self._once(_returned, found["settings"])
        _check_counts(returned, self._once(_taken, found["update"], held, elementwise))
        if isinstance(rate, RestoredFunction):
            self._once(_check_rate, rate)

    def _once(
        self, check: Callable[..., frozenset[int]], function: RestoredFunction, *about: Any
    ) -> frozenset[int]:
        key = check, id(function), *about
        if key not in self._known:
            self._known[key] = check(function.concrete_functions, *about)
        return self._known[key]


def check_formula(
    settings: Sequence[ConcreteFunction],
    update: Sequence[ConcreteFunction],
    held: int,
    elementwise: bool,
) -> None:
    """Check the traces of an optimizer's functions, as readers do.

    Parameters
    ----------
    settings, update
        The traces.
    held
        The number of states that ``update`` takes.
    elementwise
        Whether ``update`` takes rows of any length.

    Raises
    ------
    ValueError
        If they are not those of an optimizer.
    """
    _check_counts(_returned(settings), _taken(update, held, elementwise))


def _check_counts(returned: frozenset[int], taken: frozenset[int]) -> None:
    if len(returned | taken) > 1:
        raise ValueError(
            f"'update' does not take {_listed(returned)} settings, as 'settings' returns, but "
            f"{_listed(taken)}"
        )


def _check_slots(found: Mapping[str, Any]) -> tuple[str, ...]:
    slots: Any = found.get("slots", ())
    if type(slots) is not tuple or not all(map(is_attribute, slots)):
        raise ValueError(f"slots is not a tuple of names: {slots!r:.80}")
    for slot in slots:
        held = found.get(slot)
        if type(held) is not list or not all(isinstance(x, Variable) for x in held):
            raise ValueError(f"slot {slot!r} is not a list of variables")
    if len(set(slots)) < len(slots):
        raise ValueError(f"a slot is repeated: {slots!r:.80}")
    if len({len(found[slot]) for slot in slots}) > 1:
        raise ValueError("its slots have states of different numbers of variables")
    return tuple(slots)


def _check_options(optimizer: LoadedOptimizer) -> None:
    """Check the options, and keep them as the constructor would."""
    options = optimizers.options
    given = {name: getattr(optimizer, name) for name in options.OPTIONS}
    for name, value in given.items():
        if not isinstance(value, (Real, np.bool_, type(None))):
            raise ValueError(f"{name} is not a number: {value!r:.80}")
    settled = options.check_options(optimizer.class_name, given)
    vars(optimizer).update({name: x for name, x in settled.items() if name in vars(optimizer)})


def _check_scalar(value: Any, name: str, kind: str) -> None:
    if not isinstance(value, Variable) or value.shape != () or value.dtype.kind != kind:
        raise ValueError(f"{name!r} is not a scalar variable: {value!r:.80}")


def _listed(counts: Iterable[int]) -> str:
    return " and ".join(map(str, sorted(counts))) or "none"


def _returned(traces: Sequence[ConcreteFunction]) -> frozenset[int]:
    """Return how many settings functions return; raise if they are not those of a step."""
    counts = set[int]()
    for trace in traces:
        numbers = trace.results if type(trace.results) is tuple else (None,)
        if not (_all_scalars(_given(trace, 2)) and all(_is_number(trace, x) for x in numbers)):
            raise ValueError("'settings' does not return a tuple of numbers of a rate and a step")
        counts.add(len(numbers))
    return frozenset(counts)


def _taken(traces: Sequence[ConcreteFunction], held: int, elementwise: bool) -> frozenset[int]:
    """Return how many settings formulas take; raise if they are not formulas."""
    if not all(_is_update(trace, held, elementwise) for trace in traces):
        raise ValueError("'update' does not take and return a value and its state")
    return frozenset([len(trace.arguments[0][3]) for trace in traces])


def _check_rate(traces: Sequence[ConcreteFunction]) -> frozenset[int]:
    for trace in traces:
        if not (_all_scalars(_given(trace, 1)) and _is_number(trace, trace.results)):
            raise ValueError(f"{RATE!r} does not return a number of a step")
    return frozenset()


def _is_update(trace: ConcreteFunction, held: int, elementwise: bool) -> bool:
    """Return whether a trace takes a value, a gradient, a state and settings, as optimizers do."""
    given, results = _given(trace, 4), trace.results
    if not given or type(results) is not tuple or len(results) != 2:
        return False
    value, gradient, state, settings = given
    if type(state) is not tuple or type(results[1]) not in (tuple, list):
        return False
    arrays, changed = (value, gradient, *state), (results[0], *results[1])
    if len(arrays) != held + 2 or len(changed) != held + 1:
        return False
    if not (all(isinstance(x, TensorSpec) for x in arrays) and _all_scalars(settings)):
        return False
    if elementwise and (value.shape is None or [type(n) is int for n in value.shape] != [False]):
        return False
    outputs = [trace.graph.outputs[x.index] for x in changed if isinstance(x, Output)]
    return (
        len(outputs) == len(changed)
        and all(x.dtype == value.dtype for x in settings)
        and all((x.shape, x.dtype) == (value.shape, value.dtype) for x in arrays)
        and (value.dtype.kind == "c" or not any(x.dtype.kind == "c" for x in outputs))
        and not any(shapes_differ(x.shape, value.shape) for x in outputs)
    )


def _given(trace: ConcreteFunction, count: int) -> Any:
    """Return the arguments of a trace that takes so many by position; else None."""
    given, named = trace.arguments
    return given if len(given) == count and not named else None


def _all_scalars(given: Any) -> bool:
    return type(given) is tuple and all(isinstance(x, TensorSpec) and x.shape == () for x in given)


def _is_number(trace: ConcreteFunction, result: Any) -> bool:
    if isinstance(result, Output):
        found = trace.graph.outputs[result.index]
        return found.shape in ((), None) and found.dtype.kind in "biuf"
    return isinstance(result, (int, float))


def _numbers(formula: Any, rate: Any, step: Any) -> tuple[Any, ...]:
    """Return the settings of a step; outside a trace they are Python numbers."""
    found = formula(as_tensor(rate, dtype="float64"), as_tensor(step, dtype="float64"))
    if isinstance(rate, Tensor):
        return tuple(found)
    return tuple([x.item() if isinstance(x, Tensor) else x for x in found])


def _as_tensors(
    formula: Any, value: Any, gradient: Any, state: Sequence[Any], settings: Sequence[Any]
) -> Any:
    """Run a formula on one variable, whose arguments may be raw arrays and Python numbers."""
    value, gradient, *held = _tensors(value, gradient, *state)
    dtype = numpy_dtype(value.dtype)
    numbers = [x if isinstance(x, Tensor) else as_tensor(x, dtype=dtype) for x in settings]
    return formula(value, gradient, tuple(held), tuple(numbers))


def _row_wise(
    formula: Any, value: Any, gradient: Any, state: Sequence[Any], settings: Sequence[Any]
) -> Any:
    """Run an elementwise formula, whose graph takes rows, on arrays of any shape."""
    value, gradient, *held = _tensors(value, gradient, *state)
    shape = value.shape
    if len(shape) == 1:
        return _as_tensors(formula, value, gradient, held, settings)
    value, gradient, *held = [x.reshape(-1) for x in (value, gradient, *held)]
    new, changed = _as_tensors(formula, value, gradient, held, settings)
    return new.reshape(shape), tuple([x.reshape(shape) for x in changed])


def _tensors(*arrays: Any) -> list[Tensor]:
    if not all(hasattr(x, "shape") for x in arrays):  # what records ufuncs
        raise TypeError("a graph runs on arrays")
    return [x if isinstance(x, Tensor) else Tensor(x) for x in arrays]
