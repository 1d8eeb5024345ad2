"""``Optimizer``: what all optimizers share.

An optimizer writes its formula once, as a function of arrays of any type. Outside a trace it runs
on flat arrays, each made of all variables of one dtype and device (see ``packing``); in a trace, on
one variable after another, so that the graph has an assignment for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np

from ...core.extend import (
    GradientTape,
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    backend_of,
    exclusive,
    numpy_dtype,
    ops,
    public,
    scope_of,
    stage,
    to_numpy,
    unsure,
)
from ...layers.arguments import unknown_argument
from .clipping import clipped
from .options import AVERAGES, OPTIONS, SUMS, Excluded, add, check_options, first_or, with_options
from .packing import Group, do_step
from .slots import GROUPING, Slots

__all__ = ["Optimizer", "checked"]


class Optimizer(Slots):
    """Base class of optimizers.

    A subclass lists its slots (state of a variable's shape) in :attr:`slots`, and implements
    :meth:`update`, and :meth:`settings` if it needs more than the learning rate.

    Parameters
    ----------
    learning_rate
        A number, a variable, or a schedule: a function of the number of steps done. Written with
        gradtape ops, a schedule may be traced.
    name
        A Python identifier.
    clipnorm, clipvalue, global_clipnorm
        How gradients are clipped, one of them: the largest norm of each, the largest size of an
        element, or the largest norm of all together.
    weight_decay
        Which part of a variable each step takes away, times the learning rate, before the formula
        is applied. Gradients do not tell of it. See :meth:`exclude_from_weight_decay`.
    use_ema
        Whether to keep a moving average of each variable, which
        :meth:`finalize_variable_values` puts in its place.
    ema_momentum
        The decay of these averages, in ``[0, 1]``; the first step begins them.
    ema_overwrite_frequency
        After how many updates the variables become the averages; None for never.
    gradient_accumulation_steps
        How many steps gather gradients for one update by their mean, which is clipped then; None
        for each. Schedules are asked with the number of steps, formulas count updates.

    Attributes
    ----------
    iterations : Variable
        The number of steps done, ``int64``, those included that gathered gradients only.
    learning_rate
        A variable of dtype ``float64``, or the schedule; set it to a number, a variable or a
        schedule.
    weight_averages : list of Variable
        With ``use_ema``, one per trained variable.
    gradient_sums : list of Variable
        With ``gradient_accumulation_steps``, one per trained variable.

    Raises
    ------
    ValueError
        If the learning rate is negative or not finite, gradients are to be clipped in two ways or
        to nothing, or another argument is out of its range.

    Examples
    --------
    >>> class Descent(gt.training.Optimizer):
    ...     def update(self, value, gradient, state, settings):
    ...         (rate,) = settings
    ...         return value - rate * gradient, state
    >>> w = gt.Variable(1.0)
    >>> Descent(0.1).apply_gradients([(gt.constant(5.0), w)])
    >>> w.item()
    0.5
    """

    learning_rate: Any
    clipnorm: float | None = None
    clipvalue: float | None = None
    global_clipnorm: float | None = None
    weight_decay: float | None = None
    use_ema: bool = False
    ema_momentum: float = 0.99
    ema_overwrite_frequency: int | None = None
    gradient_accumulation_steps: int | None = None

    def __init__(
        self,
        learning_rate: Any,
        name: str | None = None,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        weight_decay: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        gradient_accumulation_steps: int | None = None,
        **unknown: Any,
    ) -> None:
        for argument in unknown:
            raise unknown_argument(type(self), argument)
        given = {option: value for option, value in locals().items() if option in OPTIONS}
        options = check_options(type(self).__name__, given, Optimizer)
        super().__init__(name)
        for option, value in options.items():
            setattr(self, option, value)
        kept = (AVERAGES, use_ema), (SUMS, gradient_accumulation_steps)
        added = tuple([slot for slot, wanted in kept if wanted])
        if added:
            vars(self)["slots"] = (*self.slots, *added)
        self._gradtape_excluded = Excluded()
        self.iterations = Variable(0, trainable=False, name="iterations", dtype="int64")
        self.learning_rate = learning_rate
        self.begin()
        # numbers that were read, by the variable's name: the host need not wait for them again
        self._gradtape_read: dict[str, tuple[Any, Any]] = {}
        self._gradtape_groups: dict[
            tuple[int, ...], tuple[list[Group], list[Group], exclusive]
        ] = {}

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        """Return the numbers of one step that all variables share.

        ``rate`` is the learning rate and ``step`` the number of this step, from 1: Python numbers,
        or float64 tensors in a trace.
        """
        return (rate,)

    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and the new state.

        The arguments are raw arrays or tensors, and must not be changed: only what is made here may
        be updated in place.
        """
        raise NotImplementedError

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> None:
        """Do one step.

        Parameters
        ----------
        grads_and_vars
            Pairs ``(gradient, variable)``, as ``zip(gradients, variables)`` gives them.

        Raises
        ------
        ValueError
            If a gradient is ``None`` or of another shape than its variable, or a variable comes
            twice. Nothing has changed then.
        TypeError
            If something is no variable.
        """
        pairs = list(grads_and_vars)
        variables = [variable for _, variable in pairs]
        gradients = [checked(g, variable) for g, variable in pairs]
        ids = tuple([variable.id for variable in variables])
        if active_graph.get() is not None:
            self._trace(gradients, variables)
            return
        known = self._gradtape_groups.get(ids)
        if known is None:
            with GROUPING:
                groups, sums = self._grouped(variables)
                held = chain.from_iterable(group.locked for group in (*groups, *sums))
                # the number of steps stands for the other slots
                known = groups, sums, exclusive([*held, self.iterations])
                known = self._gradtape_groups.setdefault(ids, known)
        groups, sums, alone = known
        like = gradients[0] if gradients else None
        with alone, stage(type(self).__name__, like), scope_of(gradients):
            self._step(groups, sums, gradients)

    def _step(self, groups: list[Group], sums: list[Group], gradients: list[Any]) -> None:
        done = int(self._read("iterations"))
        every = self.gradient_accumulation_steps or 1
        if (done + 1) % every:
            do_step(sums, gradients, ())
        else:
            for group in sums:  # each of one variable's kind, with no other slots
                for i, held in zip(group.members, group.variables, strict=True):
                    gradients[i] = (held.array + gradients[i]) / every
            update = done // every + 1
            do_step(groups, self._clipped(gradients), self._numbers(self._rate_at(done), update))
            for held in chain.from_iterable(group.variables for group in sums):
                held.set_array(backend_of(held.array).xp.zeros_like(held.array))
            frequency = self.ema_overwrite_frequency
            if frequency is not None and update % frequency == 0:
                for group in groups:
                    count = len(group.members)
                    pairs = zip(group.variables[:count], group.variables[-count:], strict=True)
                    for variable, mean in pairs:
                        variable.set_array(mean.array)
        count = self.iterations.array
        owner = backend_of(count)
        count = owner.asarray(done + 1, numpy_dtype(count.dtype), owner.device(count))
        self.iterations.set_array(count)
        self._gradtape_read["iterations"] = count, done + 1

    def scale_loss(self, loss: Any) -> Any:
        """Return what is differentiated for a loss: the loss itself, unless gradients are scaled.

        Parameters
        ----------
        loss
            A tensor.

        Returns
        -------
        Tensor
            The tensor whose gradients :meth:`apply_gradients` takes.
        """
        return loss

    def _clipped(self, gradients: list[Any]) -> list[Any]:
        sizes = (self.clipnorm, self.clipvalue, self.global_clipnorm)
        if sizes == (None, None, None):
            return gradients
        return [g.array for g in clipped([Tensor(g) for g in gradients], *sizes)]

    def _numbers(self, rate: Any, update: Any) -> tuple[Any, ...]:
        """Return the settings of an update, and behind them those of the options."""
        numbers = self.settings(rate, update)
        if self.weight_decay is not None:
            numbers += (rate * self.weight_decay,)
        if self.use_ema:
            numbers += (first_or(update, 1.0 - self.ema_momentum),)
        return numbers

    def _formula(self, decays: bool) -> Callable[..., Any]:
        """Return the formula with what the options add, of variables that decay or not."""
        return with_options(self.update, decays, self.weight_decay is not None, self.use_ema)

    def met(self, variable: Variable, place: int) -> None:
        """Take note of a variable that has a place now."""
        self._gradtape_excluded.meet(variable, place)

    def _decays(self, variable: Variable, place: int) -> bool:
        return self.weight_decay is not None and not self._gradtape_excluded.has(variable, place)

    def exclude_from_weight_decay(
        self, var_list: Iterable[Variable] | None = None, var_names: Iterable[str] | None = None
    ) -> None:
        """Say which variables do not decay, in place of what was said before.

        Parameters
        ----------
        var_list
            Variables.
        var_names
            Words: variables that have one of them in their names.

        Raises
        ------
        ValueError
            If steps were done already: traces of them hold what was said before.
        TypeError
            If something is no variable, or no word.

        Examples
        --------
        >>> w, bias = gt.Variable(1.0, name="w"), gt.Variable(1.0, name="bias")
        >>> optimizer = gt.training.SGD(0.5, weight_decay=0.5)
        >>> optimizer.exclude_from_weight_decay(var_names=["bias"])
        >>> optimizer.apply_gradients([(gt.constant(0.0), w), (gt.constant(0.0), bias)])
        >>> w.item(), bias.item()
        (0.75, 1.0)
        """
        if self.trained or self.unclaimed:
            raise ValueError(
                "exclude_from_weight_decay: say it before the first step; this optimizer trains "
                "variables already"
            )
        self._gradtape_excluded.set(var_list, var_names)

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Put the averages in the variables' place, as ``fit`` does at its end.

        Without ``use_ema`` it does nothing.

        Parameters
        ----------
        var_list
            Variables; those that were not trained stay as they are.

        Examples
        --------
        >>> w, optimizer = gt.Variable(0.0), gt.training.SGD(1.0, use_ema=True, ema_momentum=0.5)
        >>> for _ in range(2):
        ...     optimizer.apply_gradients([(gt.constant(-1.0), w)])
        >>> optimizer.finalize_variable_values([w])
        >>> w.item()
        1.5
        """
        if not self.use_ema:
            return
        for variable in list(var_list):
            place = self._gradtape_places.get(variable)
            if place is not None:
                variable.assign(getattr(self, AVERAGES)[place])

    def minimize(
        self, loss: Any, variables: Iterable[Variable] | Callable[[], Any], tape: Any = None
    ) -> None:
        """Do one step for a loss.

        Parameters
        ----------
        loss
            A function of no arguments that returns it; or a tensor, with the ``tape`` that recorded
            it.
        variables
            The variables, or a function that returns them once the loss was computed.
        tape
            The tape, if ``loss`` is a tensor.

        Raises
        ------
        ValueError
            If there is no tape for a tensor; and as :meth:`apply_gradients`.

        Examples
        --------
        >>> w = gt.Variable(3.0)
        >>> gt.training.SGD(0.5).minimize(lambda: w * w, [w])
        >>> w.item()
        0.0
        """
        if callable(loss):
            with GradientTape() as tape:
                loss = self.scale_loss(loss())
        elif tape is None:
            raise ValueError("minimize: a loss that is a tensor needs the tape that recorded it")
        chosen = list(variables() if callable(variables) else variables)
        self.apply_gradients(zip(tape.gradient(loss, chosen), chosen))

    def _read(self, name: str) -> Any:
        """Return the number that a variable holds."""
        array = getattr(self, name).array
        known, number = self._gradtape_read.get(name, (None, None))
        if known is not array:
            number = to_numpy(array).item()
            self._gradtape_read[name] = array, number
        return number

    def _rate_at(self, step: Any) -> Any:
        rate = self.learning_rate
        number = float(self._read("learning_rate") if isinstance(rate, Variable) else rate(step))
        if not 0.0 <= number < math.inf:
            raise ValueError(
                f"{type(self).__name__}: the learning rate of step {step + 1} is {number}; it must "
                "be finite and not negative"
            )
        return number

    def _trace(self, gradients: list[Any], variables: list[Variable]) -> None:
        """Do one step in a trace: through ops and assignments."""
        places = self.build(variables)
        done, every = self.iterations.value, self.gradient_accumulation_steps
        rate = self.learning_rate
        rate = rate.value if isinstance(rate, Variable) else as_tensor(rate(done))
        rate = rate.astype("float64")
        given = [Tensor(g) for g in gradients]
        if every is None:
            self._trace_update(given, variables, places, rate, done.astype("float64") + 1.0)
        else:
            held = [getattr(self, SUMS)[place] for place in places]

            def update() -> None:
                means = [(s.value + g) / every for s, g in zip(held, given, strict=True)]
                step = (done // every).astype("float64") + 1.0
                self._trace_update(means, variables, places, rate, step)
                for total in held:
                    total.assign(ops["zeros_like"](total.value))

            def gather() -> None:
                for total, g in zip(held, given, strict=True):
                    total.assign_add(g)

            public("cond")(ops["equal"]((done + 1) % every, 0), update, gather)
        self.iterations.assign_add(1)

    def _trace_update(
        self, gradients: list[Any], variables: list[Variable], places: list[int], rate: Any, n: Any
    ) -> None:
        settings = self._numbers(rate, n)
        sizes = (self.clipnorm, self.clipvalue, self.global_clipnorm)
        slots = [slot for slot in self.slots if slot != SUMS]
        cast: dict[Any, tuple[Any, ...]] = {}
        frequency = self.ema_overwrite_frequency
        pairs = zip(clipped(gradients, *sizes), variables, places, strict=True)
        for gradient, variable, place in pairs:
            held = [getattr(self, slot)[place] for slot in slots]
            if variable.dtype not in cast:
                cast[variable.dtype] = tuple([x.astype(variable.dtype) for x in settings])
            state = [slot.value for slot in held]
            formula = self._formula(self._decays(variable, place))
            value, changed = formula(variable.value, gradient, state, cast[variable.dtype])
            if frequency is not None:
                value = ops["where"](ops["equal"](n % frequency, 0.0), changed[-1], value)
            variable.assign(value)
            for slot, new in zip(held, changed, strict=True):
                slot.assign(new)

    def _grouped(self, variables: list[Variable]) -> tuple[list[Group], list[Group]]:
        """Return the variables grouped by array type, device, dtype and whether they decay.

        And the sums of their gradients, likewise.
        """
        places = self.build(variables)
        found: dict[Any, list[int]] = {}
        for i, variable in enumerate(variables):
            array = variable.array
            owner = backend_of(array)
            decays = self._decays(variable, places[i])
            key = (owner.name, owner.device(array), array.dtype, decays)
            found.setdefault(key, []).append(i)
        groups, sums = [], []
        for (*_, decays), members in found.items():
            by_slot = {
                slot: [getattr(self, slot)[places[i]] for i in members] for slot in self.slots
            }
            if SUMS in by_slot:
                sums.append(Group(members, [by_slot.pop(SUMS)], add))
            columns = [[variables[i] for i in members], *by_slot.values()]
            groups.append(Group(members, columns, self._formula(decays)))
        return groups, sums

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "learning_rate":
            value = self._as_rate(value)
        elif "_gradtape_groups" in vars(self):  # groups know slots and attributes
            if name in ("use_ema", "gradient_accumulation_steps") and value != getattr(self, name):
                raise AttributeError(
                    f"{type(self).__name__}: {name} is given when an optimizer is made"
                )
            vars(self)["_gradtape_groups"] = {}
        super().__setattr__(name, value)

    def _as_rate(self, value: Any) -> Any:
        """Return a learning rate as it is kept; a number goes into the variable that is there."""
        if callable(value) or isinstance(value, Variable):
            return value
        if isinstance(value, (str, bytes)) or np.ndim(value) or np.iscomplexobj(value):
            raise TypeError(
                f"{type(self).__name__}: learning_rate is a number, a variable or a schedule, got "
                f"{value!r}"
            )
        if value is None or not 0.0 <= float(value) < math.inf:
            wrong = "be finite" if value == math.inf else "not be negative"
            raise ValueError(f"{type(self).__name__}: learning_rate must {wrong}, got {value!r}")
        known = vars(self).get("learning_rate")
        if isinstance(known, Variable):
            return known.assign(np.float64(value))
        return Variable(value, trainable=False, name="learning_rate", dtype="float64")

    def __getstate__(self) -> dict[str, Any]:
        # A copy groups its own variables. It claims those that came with it, which are those of
        # the model's copy only if the two were copied together.
        apart = {
            "_gradtape_groups": {},
            "_gradtape_places": {},
            "_gradtape_claims": self.trained,
            "_gradtape_read": {},
        }
        return {**vars(self), **apart}

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, with the learning rate's current value.

        And which variables do not decay: words in their names, and places among those trained.
        """
        rate, excluded = self.learning_rate, self._gradtape_excluded.config()
        return {
            "learning_rate": float(rate.array) if isinstance(rate, Variable) else rate,
            "name": self.name,
            **{option: vars(self)[option] for option in OPTIONS if option in vars(self)},
            **({} if excluded is None else {"excluded_from_weight_decay": excluded}),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return an optimizer made with what :meth:`get_config` returned."""
        config = dict(config)
        excluded = config.pop("excluded_from_weight_decay", None)
        made = cls(**config)
        if excluded is not None:
            made._gradtape_excluded.load(excluded)
        return made


def checked(gradient: Any, variable: Any) -> Any:
    """Return a gradient as an array (a symbol, in a trace) of its variable's shape and dtype."""
    if type(gradient) is Tensor and isinstance(variable, Variable):  # the commonest, in few words
        array, own = gradient.array, variable.array
        shape = array.shape
        if array.dtype is own.dtype and not unsure(shape) and shape == own.shape:
            return array
    if not isinstance(variable, Variable):
        raise TypeError(
            f"apply_gradients: expected pairs (gradient, variable), got {type(variable).__name__} "
            "in a variable's place"
        )
    if type(gradient) is not Tensor:
        if gradient is None:
            raise ValueError(
                f"apply_gradients: the gradient of variable {variable.name!r} (shape "
                f"{variable.shape}) is None: the target does not depend on it in a differentiable "
                "way. tape.explain(target, variable) says why; leave the variable out if that is "
                "meant"
            )
        gradient = as_tensor(gradient)
    array = gradient.array
    if unsure(array.shape) or array.shape != variable.array.shape:
        raise ValueError(
            f"apply_gradients: the gradient of variable {variable.name!r} has shape {array.shape}, "
            f"the variable has shape {variable.shape}"
        )
    if array.dtype is not variable.array.dtype and array.dtype != variable.array.dtype:
        array = gradient.astype(variable.dtype).array
    return array
