"""``Optimizer``: what all optimizers share.

An optimizer writes its formula once, as a function of arrays of any type. Outside a trace it runs
on flat arrays, each made of all variables of one dtype and device (see ``packing``); in a trace, on
one variable after another, so that the graph has an assignment for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from threading import RLock
from typing import Any, Self

import numpy as np

from ..core.extend import (
    F,
    GradientTape,
    Module,
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    backend_of,
    exclusive,
    init_scope,
    numpy_dtype,
    scope_of,
    stage,
    to_numpy,
    unsure,
)
from .clipping import CLIPPING, check_clipping, clipped
from .packing import Group, do_step

__all__ = ["Optimizer", "checked_gradient"]


class Optimizer(Module):
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

    Attributes
    ----------
    iterations : Variable
        The number of steps done, ``int64``.
    learning_rate
        A variable of dtype ``float64``, or the schedule; set it to a number, a variable or a
        schedule.

    Raises
    ------
    ValueError
        If the learning rate is negative or not finite, or gradients are to be clipped in two ways
        or to nothing.

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
    #: The attributes, each a list, that hold one variable per trained variable.
    slots: tuple[str, ...] = ()

    clipnorm: float | None = None
    clipvalue: float | None = None
    global_clipnorm: float | None = None

    def __init__(
        self,
        learning_rate: Any,
        name: str | None = None,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
    ) -> None:
        super().__init__(name)
        sizes = check_clipping(type(self).__name__, clipnorm, clipvalue, global_clipnorm)
        for option, size in sizes.items():
            setattr(self, option, size)
        self.iterations = Variable(0, trainable=False, name="iterations", dtype="int64")
        self.learning_rate = learning_rate
        for slot in self.slots:
            setattr(self, slot, [])
        # the names say that these are no part of the module tree
        self._gradtape_places: dict[Variable, int] = {}
        self._gradtape_claims: list[Variable] = []
        # numbers that were read, by the variable's name: the host need not wait for them again
        self._gradtape_read: dict[str, tuple[Any, Any]] = {}
        self._gradtape_groups: dict[tuple[int, ...], tuple[list[Group], exclusive]] = {}

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
        gradients = [checked_gradient(g, variable) for g, variable in pairs]
        sizes = (self.clipnorm, self.clipvalue, self.global_clipnorm)
        if sizes != (None, None, None):
            gradients = [g.array for g in clipped([Tensor(g) for g in gradients], *sizes)]
        ids = tuple([variable.id for variable in variables])
        if active_graph.get() is not None:
            self._trace(gradients, variables)
            return
        known = self._gradtape_groups.get(ids)
        if known is None:
            with _GROUPING:
                groups = self._grouped(variables)
                held = chain.from_iterable(group.locked for group in groups)
                # the number of steps stands for the other slots
                known = groups, exclusive([*held, self.iterations])
                known = self._gradtape_groups.setdefault(ids, known)
        groups, alone = known
        like = gradients[0] if gradients else None
        with alone, stage(type(self).__name__, like):
            self._step(groups, gradients)

    def _step(self, groups: list[Group], gradients: list[Any]) -> None:
        done = int(self._read("iterations"))
        settings = self.settings(self._rate_at(done), done + 1)
        with scope_of(gradients):
            do_step(groups, self.update, gradients, settings)
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
        done = self.iterations.value
        rate = self.learning_rate
        rate = rate.value if isinstance(rate, Variable) else as_tensor(rate(done))
        step = done.astype("float64") + 1.0
        settings = self.settings(rate.astype("float64"), step)
        cast: dict[Any, tuple[Any, ...]] = {}
        for gradient, variable, place in zip(gradients, variables, places, strict=True):
            held = [getattr(self, slot)[place] for slot in self.slots]
            if variable.dtype not in cast:
                cast[variable.dtype] = tuple([x.astype(variable.dtype) for x in settings])
            state = [slot.value for slot in held]
            value, changed = self.update(
                variable.value, Tensor(gradient), state, cast[variable.dtype]
            )
            variable.assign(value)
            for slot, new in zip(held, changed, strict=True):
                slot.assign(new)
        self.iterations.assign_add(1)

    def build(self, variables: Iterable[Variable]) -> list[int]:
        """Make the slots of variables not seen before; return every variable's place in them."""
        variables = list(variables)
        if len(set(map(id, variables))) < len(variables):
            twice = next(v for v in variables if sum(v is other for other in variables) > 1)
            raise ValueError(
                f"{type(self).__name__}: variable {twice.name!r} comes twice in one step"
            )
        with _GROUPING:
            return self._places(variables)

    def claim(self, variables: Iterable[Variable]) -> None:
        """Say which variables the state from a file is for: those beside it in the file.

        Raises
        ------
        ValueError
            If the state is not that of these variables.
        """
        claims = list(variables)
        shapes = [variable.shape for variable in claims]
        for slot in self.slots:
            held = getattr(self, slot)
            if type(held) is not list or [getattr(x, "shape", None) for x in held] != shapes:
                raise ValueError(f"{slot} is not the state of variables of shapes {shapes}")
        self._gradtape_claims = claims

    def adopt(self, variables: Iterable[Variable]) -> None:
        """Give the state from a file or a pickle to the variables beside it, if these are them.

        If not, variables of the same values stand for them: those of a model in another pickle.
        Others, of a model that was made anew, get it in their order.
        """
        claims, places = self._gradtape_claims, self._gradtape_places
        fresh = [variable for variable in variables if variable not in places]
        if not claims or not fresh:
            return
        if set(claims).isdisjoint(fresh):
            owners = _twins(claims, fresh)
        else:
            owners = {claim: claim for claim in claims}
        if owners:
            known = places or {claim: place for place, claim in enumerate(claims)}
            self._gradtape_places = {owners.get(x, x): place for x, place in known.items()}
            # frozen ones come when they are thawed, and have their values until then
            self._gradtape_claims = [claim for claim in claims if claim not in owners]

    def _places(self, variables: list[Variable]) -> list[int]:
        self.adopt(variables)
        places: list[int] = []
        fresh: list[tuple[Variable, int]] = []
        for variable in variables:
            place = self._gradtape_places.get(variable)
            if place is None:
                place = len(self._gradtape_places) + len(fresh)
                fresh.append((variable, place))
                self._check_slots(variable, place)
            places.append(place)
        for variable, place in fresh:
            self._gradtape_places[variable] = place
            for slot in self.slots:
                if len(getattr(self, slot)) == place:
                    getattr(self, slot).append(_zeros_for(variable, slot))
        return places

    @property
    def trained(self) -> list[Variable]:
        """The variables that it trained so far, as far as they are known, in the slots' order."""
        return list(self._gradtape_places) or self._gradtape_claims

    def states(self) -> Iterator[tuple[str, Variable | None, Variable]]:
        """Yield what is kept for the variables that are trained.

        Yields
        ------
        slot : str
            The name of the slot.
        variable : Variable or None
            The variable; None if a file brought the state, and nobody has claimed it.
        state : Variable
            What is kept for it.
        """
        trained = self.trained
        for slot in self.slots:
            for place, state in enumerate(getattr(self, slot)):
                yield slot, trained[place] if place < len(trained) else None, state

    @property
    def unclaimed(self) -> int:
        """How many variables' state a file brought, until the first of them are given."""
        held = max((len(getattr(self, slot)) for slot in self.slots), default=0)
        return 0 if self._gradtape_places else held

    def _check_slots(self, variable: Variable, place: int) -> None:
        """Check what a saved file brought against the variable that it is now for."""
        for slot in self.slots:
            held = getattr(self, slot)
            if place < len(held) and held[place].shape != variable.shape:
                raise ValueError(
                    f"{type(self).__name__}: {slot}[{place}] has shape {held[place].shape}, but "
                    f"variable {variable.name!r} has shape {variable.shape}; pass the variables in "
                    "the order in which the optimizer first had them"
                )

    def _grouped(self, variables: list[Variable]) -> list[Group]:
        """Return the variables grouped by array type, device and dtype."""
        places = self.build(variables)
        found: dict[Any, list[int]] = {}
        for i, variable in enumerate(variables):
            array = variable.array
            owner = backend_of(array)
            key = (owner.name, owner.device(array), array.dtype)
            found.setdefault(key, []).append(i)
        groups = []
        for members in found.values():
            columns = [[variables[i] for i in members]]
            columns += [[getattr(self, slot)[places[i]] for i in members] for slot in self.slots]
            groups.append(Group(members, columns))
        return groups

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "learning_rate":
            value = self._as_rate(value)
        elif "_gradtape_groups" in vars(self):  # groups know slots and attributes
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
        apart = {"_gradtape_groups": {}, "_gradtape_places": {}, "_gradtape_claims": self.trained}
        return {**vars(self), **apart}

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, with the learning rate's current value."""
        rate = self.learning_rate
        return {
            "learning_rate": float(rate.array) if isinstance(rate, Variable) else rate,
            "name": self.name,
            **{option: vars(self)[option] for option in CLIPPING if option in vars(self)},
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return an optimizer made with the arguments that :meth:`get_config` returned."""
        return cls(**config)


#: Held while one thread makes slots; not while it waits for variables.
_GROUPING = RLock()


def checked_gradient(gradient: Any, variable: Any) -> Any:
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


def _twins(claims: list[Variable], variables: list[Variable]) -> dict[Variable, Variable]:
    """Return which of a copy's variables stands for which; nothing, if it is of another model.

    A part of the variables will do, where the others are frozen.
    """
    known: dict[Any, list[Variable]] = {}
    for claim in claims:
        known.setdefault(_content(claim), []).append(claim)
    owners = {}
    for variable in variables:
        twins = known.get(_content(variable))
        if twins:
            owners[twins.pop(0)] = variable
    return owners if len(owners) == min(len(claims), len(variables)) else {}


def _content(variable: Variable) -> Any:
    return variable.shape, variable.dtype, to_numpy(variable.array).tobytes()


def _zeros_for(variable: Variable, slot: str) -> Variable:
    with init_scope():
        zeros = F.zeros_like(variable.array)
        return Variable(zeros, trainable=False, name=f"{variable.name}_{slot}")
