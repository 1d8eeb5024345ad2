"""``Optimizer``: the base class of optimizers.

An optimizer defines its formula once, as a function of arrays of any type. Outside a trace, the
formula runs on flat arrays, each with all variables of one dtype and device (see ``updates``). In a
trace it runs on one variable after another, so that the graph has an assignment for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...core.extend import (
    GradientTape,
    Tensor,
    Variable,
    active_graph,
    backend_of,
    complete_docstring,
    exclusive,
    hinted,
    scope_of,
    stage,
    warn_user,
)
from ...layers import unknown_argument, with_own_arguments
from .decay import Decaying, Excluded, as_rate, checked_rate
from .options import (
    AVERAGES,
    EMA_MOMENTUM,
    OF_AVERAGES,
    OPTIONS,
    SUMS,
    add,
    check_options,
    checked,
    clipped,
    first_or,
    list_of_variables,
    warn_of_name,
    with_options,
)
from .slots import GROUPING
from .updates import VariableGroup, do_step, traced_step

if TYPE_CHECKING:
    from typing import Unpack

    from .options import Options

__all__ = ["Optimizer"]


class Optimizer(Decaying):
    """Base class of optimizers.

    A subclass lists its slots (state with the shape of a variable) in :attr:`slots`. It implements
    :meth:`update`, and :meth:`settings` if it needs more than the learning rate.

    Parameters
    ----------
    learning_rate
        A number, a variable, or a schedule: a function of the number of completed steps. A schedule
        written with gradtape ops may be traced.
    name
        A Python identifier.
    clipnorm, clipvalue, global_clipnorm
        Clip gradients; set at most one. The largest norm of each gradient, the largest absolute
        value of an element, or the largest norm of all gradients together.
    weight_decay
        Before applying the formula, each step subtracts this fraction of a variable, times the
        learning rate. The decay is not part of the gradients. See
        :meth:`exclude_from_weight_decay`.
    use_ema
        Whether to keep a moving average of each variable. :meth:`finalize_variable_values` assigns
        the averages to the variables.
    ema_momentum
        The decay of these averages, in ``[0, 1]``. Each starts from the value after the first
        update of its variable.
    ema_overwrite_frequency
        The number of updates of a variable after which its average overwrites it; None for never.
    gradient_accumulation_steps
        The number of steps that accumulate gradients for one update. The update uses their mean,
        and clips that. None updates at every step. Schedules get the number of all steps, formulas
        the number of updates of a variable, and a variable's steps are those that it takes part in.
    options
        The arguments from ``clipnorm`` on, by their names. A class may state other defaults as
        attributes (``clipnorm = 1.0``). An unknown argument is an error, which suggests a name.

    Attributes
    ----------
    iterations : Variable
        The number of completed steps, ``int64``. Steps that only accumulate gradients count.
    learning_rate
        A variable of dtype ``float64``, or the schedule. You can set it to a number, a variable or
        a schedule.
    step_counts : list of Variable
        The number of steps of each trained variable; empty while each took part in all of them.
        Variables that take part in the same steps share an element.
    weight_averages : list of Variable
        With ``use_ema``, one per trained variable.
    gradient_sums : list of Variable
        With ``gradient_accumulation_steps``, one per trained variable.

    Raises
    ------
    ValueError
        If the learning rate is negative or not finite, more than one kind of clipping is set, or
        another argument is out of its range.
    TypeError
        If there is an unknown argument.

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

    _gradtape_internal = "fixed_formula skips_missing"
    _gradtape_hooks = "get_config settings slots update"

    _family = """
    Parameters
    ----------
    learning_rate
        A number, a variable, or a function of the number of completed steps.
    name
        A Python identifier.
    options
        ``weight_decay``, ``clipnorm``, ``use_ema`` and others, as for :class:`Optimizer`.
    """
    #: The constructor's arguments for the formula, which are also attributes.
    _arguments: ClassVar[tuple[str, ...]] = ()
    #: Whether a formula by blocks reads nothing that changes, except its arguments and attributes
    #: that are numbers: the ufuncs of one step then serve all. Subclasses do not inherit it.
    fixed_formula: ClassVar[bool] = False
    #: Whether steps leave out variables without a gradient, instead of refusing them.
    skips_missing: ClassVar[bool] = False
    #: Whether the gradients at one point are enough for a step. If not, ``fit`` cannot use it.
    takes_gradients: ClassVar[bool] = True
    #: The overridden methods that leave a step as the formula says: files hold the formula alone.
    same_step: ClassVar[tuple[str, ...]] = ()

    learning_rate: Any
    clipnorm: float | None = None
    clipvalue: float | None = None
    global_clipnorm: float | None = None
    weight_decay: float | None = None
    use_ema: bool = False
    ema_momentum: float = EMA_MOMENTUM
    ema_overwrite_frequency: int | None = None
    gradient_accumulation_steps: int | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete_docstring(cls)
        if "update_step" in vars(cls) and cls.update is Optimizer.update:
            raise TypeError(
                f"{cls.__name__} has update_step, as Keras's optimizers do; an optimizer of "
                "gradtape has update(value, gradient, state, settings), which returns the new "
                "value and the new state"
            )

    def __init__(
        self,
        learning_rate: Any,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        for argument in options:
            if argument not in OPTIONS:
                raise unknown_argument(type(self), argument, OPTIONS)
        stated = {option: getattr(type(self), option) for option in OPTIONS}
        given = check_options(type(self).__name__, {**stated, **options})
        for option in OF_AVERAGES:  # a class may state them for objects with averages
            known = stated[option], getattr(Optimizer, option)
            if not given["use_ema"] and given[option] not in known:
                raise ValueError(
                    f"{type(self).__name__}: {option} needs averages of weights: set use_ema=True"
                )
        super().__init__(name)
        for option, value in given.items():
            # files hold what a class states, too: readers may not have the class
            if not value == stated[option] == getattr(Optimizer, option):
                setattr(self, option, value)
        kept = (AVERAGES, self.use_ema), (SUMS, self.gradient_accumulation_steps)
        added = tuple([slot for slot, wanted in kept if wanted])
        if added:
            vars(self)["slots"] = (*self.slots, *added)
        self._gradtape_excluded = Excluded()
        self.iterations = Variable(0, trainable=False, name="iterations", dtype="int64")
        self.learning_rate = learning_rate
        self.begin()
        # numbers read from variables, by id, so that the host does not wait for them again
        self._gradtape_read: dict[int, tuple[Any, Any]] = {}
        self._gradtape_groups: dict[
            tuple[int, ...],
            tuple[list[VariableGroup], list[VariableGroup], list[Variable], exclusive],
        ] = {}

    @property
    def _gradtape_described(self) -> list[str]:
        """What a class states itself: files hold it for a class that readers do not know."""
        stated = ("slots", "skips_missing")
        return [name for name in stated if getattr(self, name) != getattr(Optimizer, name)]

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        """Return the numbers of one step that all variables share.

        ``rate`` is the learning rate, and ``step`` the number of this step, counted from 1 for each
        variable. They are Python numbers, or float64 tensors in a trace. Variables that took part
        in different numbers of steps get different settings.
        """
        return (rate,)

    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and the new state of a variable.

        The arguments are arrays of a backend in steps that run as Python, and tensors in traces. Do
        not change them; only arrays created here may be updated in place. Compute with operators,
        gradtape's functions, or those of the arrays' library. If the formula is elementwise, mark
        it with ``@gradtape.training.optimizers.by_blocks``: a call then gets many variables in one
        row, which is faster.

        Parameters
        ----------
        value, gradient
            The value and its gradient, clipped and averaged, of the variable's shape and dtype.
        state
            One array of this shape and dtype for each name in :attr:`slots`.
        settings
            What :meth:`settings` returned; the learning rate alone by default.

        Returns
        -------
        tuple
            The new value, and a tuple of the new state in the order of :attr:`slots`.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: define update(value, gradient, state, settings), returning "
            "the new value and the new state"
        )

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> None:
        """Do one step.

        Parameters
        ----------
        grads_and_vars
            Pairs ``(gradient, variable)``, as from ``zip(gradients, variables)``.

        Raises
        ------
        ValueError
            If a gradient is ``None``, its shape differs from the variable's, or a variable appears
            twice. Then nothing has changed.
        TypeError
            If an element is not a pair, or its second element is not a variable.
        """
        pairs = list(grads_and_vars)
        try:
            variables = [variable for _, variable in pairs]
        except (TypeError, ValueError) as error:
            raise TypeError(
                "apply_gradients: expected pairs (gradient, variable); write "
                "apply_gradients(zip(gradients, variables))"
            ) from error
        gradients = [checked(g, variable) for g, variable in pairs]
        ids = tuple([variable.id for variable in variables])
        if active_graph.get() is not None:
            traced_step(self, gradients, variables)
            return
        known = self._gradtape_groups.get(ids)
        if known is None:
            with GROUPING:
                groups, sums, counters = self._grouped(variables)
                held = chain.from_iterable(group.locked for group in (*groups, *sums))
                # the lock of the step counter protects the slots that are not locked themselves
                known = groups, sums, counters, exclusive([*held, self.iterations])
                known = self._gradtape_groups.setdefault(ids, known)
        groups, sums, counters, alone = known
        like = gradients[0] if gradients else None
        with alone, stage(type(self).__name__, like), scope_of(gradients):
            self._step(groups, sums, counters, gradients)

    def _step(
        self,
        groups: list[VariableGroup],
        sums: list[VariableGroup],
        counters: list[Variable],
        gradients: list[Any],
    ) -> None:
        done, every = self._read(self.iterations), self.gradient_accumulation_steps
        taken = [self._read(counter) for counter in counters]
        work = due = groups
        #: The number of the update that is due for each counter; None if it only accumulates.
        updates: list[Any] = [n + 1 for n in taken]
        if every is not None:
            updates = [None if n % every else n // every for n in updates]
            due = [group for group in groups if updates[group.counter] is not None]
            work = due + [group for group in sums if updates[group.counter] is None]
            sums = [group for group in sums if updates[group.counter] is not None]
            for group in sums:  # each has one column: the sums
                for i, held in zip(group.members, group.variables, strict=True):
                    gradients[i] = (held.array + gradients[i]) / every
        rate = self._rate_at(done) if due else None
        settings = [() if n is None else self._step_numbers(rate, n) for n in updates]
        counts = [
            (counter, n + 1)
            for counter, n in zip(counters, taken, strict=True)
            if counter is not self.iterations
        ]
        counts.append((self.iterations, done + 1))
        # before anything is assigned: there may be no memory for them
        arrays = [self._array_of(counter, n) for counter, n in counts]
        do_step(work, self._clipped(gradients, due), settings)
        for group in sums:
            for held in group.variables:
                held.set_array(backend_of(held.array).xp.zeros_like(held.array))
        frequency = self.ema_overwrite_frequency
        for group in due if frequency is not None else ():
            if updates[group.counter] % frequency == 0:
                group.take_last_slot()
        for (counter, n), array in zip(counts, arrays, strict=True):
            self._write(counter, n, array)

    def _clipped(self, gradients: list[Any], groups: list[VariableGroup]) -> list[Any]:
        """Return the gradients, with those of these groups clipped."""
        sizes = (self.clipnorm, self.clipvalue, self.global_clipnorm)
        if sizes == (None, None, None):
            return gradients
        members = sorted(chain.from_iterable(group.members for group in groups))
        found = clipped([Tensor(gradients[i]) for i in members], *sizes)
        gradients = list(gradients)
        for i, gradient in zip(members, found, strict=True):
            gradients[i] = gradient.array
        return gradients

    def scale_loss(self, loss: Any) -> Any:
        """Return the tensor to differentiate: the loss itself, unless the optimizer scales it.

        Parameters
        ----------
        loss
            A tensor.

        Returns
        -------
        Tensor
            The tensor whose gradients :meth:`apply_gradients` expects.
        """
        return loss

    def _step_numbers(self, rate: Any, update: Any) -> tuple[Any, ...]:
        """Return the settings of an update, followed by those of the options."""
        numbers = self.settings(rate, update)
        if not isinstance(numbers, tuple):
            raise TypeError(
                f"{type(self).__name__}: settings must return a tuple of numbers, such as (rate,), "
                f"got {type(numbers).__name__}"
            )
        if self.weight_decay is not None:
            numbers += (rate * self.weight_decay,)
        if self.use_ema:
            numbers += (first_or(update, 1.0 - self.ema_momentum),)
        return numbers

    def _step_formula(self, decays: bool) -> Callable[..., Any]:
        """Return the formula with the options applied, for variables that decay or do not."""
        return with_options(self.update, decays, self.weight_decay is not None, self.use_ema)

    def met(self, variable: Variable, place: int) -> None:
        """Note a variable that just got a place."""
        super().met(variable, place)
        if variable.dtype != "float16":
            return
        narrow = [other for other in self._gradtape_places if other.dtype == "float16"]
        if narrow == [variable]:  # the first of them
            warn_user(
                f"{type(self).__name__}: variable {variable.name!r} is float16: small updates are "
                "rounded away, and the square of a gradient below 2.4e-4 is 0, which makes "
                "Adam's updates too large. To keep weights in float32 and compute in float16, pass "
                'dtype="mixed_float16" to the layer',
                RuntimeWarning,
            )

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Assign the averages to the variables, as ``fit`` does at its end.

        Without ``use_ema`` this does nothing.

        Parameters
        ----------
        var_list
            Variables; those that were never updated do not change.

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
            if place is None:
                continue
            if self._read(self.counter(place)) >= (self.gradient_accumulation_steps or 1):
                variable.assign(getattr(self, AVERAGES)[place])

    def minimize(
        self, loss: Any, variables: Iterable[Variable] | Callable[[], Any], tape: Any = None
    ) -> None:
        """Do one step that reduces a loss.

        Parameters
        ----------
        loss
            A function without arguments that returns the loss; or a tensor, with the ``tape`` that
            recorded it.
        variables
            The variables, or a function that returns them and is called after the loss.
        tape
            The tape, if ``loss`` is a tensor.

        Raises
        ------
        ValueError
            If ``loss`` is a tensor and there is no tape; and as for :meth:`apply_gradients`.

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
        chosen = list_of_variables(variables)
        self.apply_gradients(zip(tape.gradient(loss, chosen), chosen))

    def _rate_at(self, step: Any) -> Any:
        rate = self.learning_rate
        number = float(self._read(rate) if isinstance(rate, Variable) else rate(step))
        return checked_rate(type(self).__name__, number, step)

    def _grouped(
        self, variables: list[Variable]
    ) -> tuple[list[VariableGroup], list[VariableGroup], list[Variable]]:
        """Return the variables, and the sums of their gradients, in groups; and their counters.

        All variables of a group have the same array type, device and dtype, share a counter, and
        all decay or none. A formula that is not marked as elementwise has a group for each
        variable.
        """
        apart = not getattr(self.update, "by_blocks", False)
        # another class may read a list, a property or a global variable, which changes unseen
        lasting = bool(vars(type(self)).get("fixed_formula", False))
        places = self.take_part(variables)
        counters: dict[Variable, int] = {}
        found: dict[Any, list[int]] = {}
        for i, variable in enumerate(variables):
            array = variable.array
            owner = backend_of(array)
            decays = self._decays_at(variable, places[i])
            place = i if apart else None
            counter = counters.setdefault(self.counter(places[i]), len(counters))
            key = (place, owner.name, owner.device(array), array.dtype, decays, counter)
            found.setdefault(key, []).append(i)
        groups, sums = [], []
        for (*_, decays, counter), members in found.items():
            by_slot = {
                slot: [getattr(self, slot)[places[i]] for i in members] for slot in self.slots
            }
            if SUMS in by_slot:
                sums.append(VariableGroup(members, [by_slot.pop(SUMS)], add, True, counter))
            columns = [[variables[i] for i in members], *by_slot.values()]
            groups.append(
                VariableGroup(members, columns, self._step_formula(decays), lasting, counter)
            )
        return groups, sums, list(counters)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "learning_rate":
            value = as_rate(type(self).__name__, value, vars(self).get("learning_rate"))
        elif "_gradtape_groups" in vars(self):  # groups depend on slots and attributes
            if name in ("use_ema", "gradient_accumulation_steps") and value != getattr(self, name):
                raise AttributeError(
                    f"{type(self).__name__}: {name} can only be set in the constructor; create "
                    "another optimizer"
                )
            vars(self)["_gradtape_groups"] = {}
            if name not in vars(self) and not hasattr(type(self), name):
                warn_of_name(self, name)
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        # A copy groups its own variables. It claims the variables that were copied with it. These
        # belong to the model's copy only if optimizer and model were copied together.
        apart = {
            "_gradtape_groups": {},
            "_gradtape_places": {},
            "_gradtape_claims": self.trained,
            "_gradtape_read": {},
        }
        return {**vars(self), **apart}

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, with the current value of the learning rate.

        They include which variables do not decay: strings in their names, and their places among
        the trained variables. An argument that a subclass adds is the attribute of its name.

        Raises
        ------
        TypeError
            If there is no such attribute: set it, or define ``get_config``.
        """
        rate, excluded = self.learning_rate, self._gradtape_excluded.config()
        known = {
            "learning_rate": float(rate.array) if isinstance(rate, Variable) else rate,
            "name": self.name,
            **{option: vars(self)[option] for option in OPTIONS if option in vars(self)},
            **({} if excluded is None else {"excluded_from_weight_decay": excluded}),
            **{argument: getattr(self, argument) for argument in self._arguments},
        }
        return with_own_arguments(self, Optimizer, known)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return an optimizer, constructed from what :meth:`get_config` returned."""
        config = dict(config)
        excluded = config.pop("excluded_from_weight_decay", None)
        made = cls(**config)
        if excluded is not None:
            made._gradtape_excluded.load(excluded)
        return made


hinted(Optimizer, "training.Optimizer")
