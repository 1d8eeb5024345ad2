"""``LBFGS``: steps on a whole data set, with a line search."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple

from ...core.errors import TraceError
from ...core.extend import (
    GradientTape,
    Tensor,
    ValueHolder,
    Variable,
    active_graph,
    as_tensor,
    flatten_to_vector,
    kind_of,
    reducing,
    warn_user,
)
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer
from .options import checked, list_of_variables, sizes

__all__ = ["LBFGS"]

#: The largest history. Each step has two slots, and a file must not demand any number of them.
_MOST = 1000


class _Pair(NamedTuple):
    """A step, the change of the gradient, and the reciprocal of their dot product."""

    step: Any
    change: Any
    inverse: float


class LBFGS(Optimizer, saved_as="training.LBFGS"):
    """The limited-memory BFGS method, for losses over all data.

    Parameters
    ----------
    learning_rate
        The length of a step, or the first length that the line search tries: a number, a variable,
        or a function of the number of completed steps.
    max_iterations
        The maximum number of steps in one call of :meth:`minimize`.
    max_evaluations
        The maximum number of evaluations of the loss in one call; 5 / 4 of ``max_iterations`` if
        None.
    tolerance_gradient
        A call ends when no element of the gradient is larger.
    tolerance_change
        A call ends when the loss, or every element of the variables, changes by no more than this.
    history_size
        The number of steps from which the curvature is estimated, at most 1000.
    line_search
        ``"strong_wolfe"``, or None for steps of a fixed length.

    Attributes
    ----------
    stopped : str or None
        The name of the argument that ended the last call of :meth:`minimize`:
        ``"tolerance_gradient"``, ``"tolerance_change"``, ``"max_iterations"`` or
        ``"max_evaluations"``. None before the first call.
    gradients, directions : list of Variable
        Those of the last step, one per trained variable.
    steps_0, changes_0, steps_1, changes_1, ... : list of Variable
        The last steps and the changes of the gradients, the oldest first.
    pairs : Variable
        The number of these pairs.
    length, scale : Variable
        The length of the last step along its direction, and the factor of the initial inverse
        Hessian.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The steps are those of PyTorch's ``LBFGS``, except at kinks of the loss, such as those of
    absolute values. The steps need memory for ``2 * history_size + 2`` copies of the variables.
    Clipping, averages and weight decay are not supported.

    References
    ----------
    J. Nocedal and S. Wright, "Numerical Optimization", 2nd edition, algorithms 3.5, 3.6 and 7.5.

    Examples
    --------
    >>> x = gt.Variable([-1.5, 2.0], dtype="float64")
    >>> def rosenbrock():
    ...     return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> optimizer = gt.training.LBFGS(max_iterations=100)
    >>> optimizer.minimize(rosenbrock, [x])
    >>> gt.round(x, 3).tolist()
    [1.0, 1.0]
    """

    fixed_formula = True
    #: A step evaluates the loss at several points, so the gradients at one point do not suffice.
    takes_gradients = False
    _arguments = (
        "max_iterations",
        "max_evaluations",
        "tolerance_gradient",
        "tolerance_change",
        "history_size",
        "line_search",
    )
    gradients: list[Variable]
    directions: list[Variable]

    def __init__(
        self,
        learning_rate: Any = 1.0,
        max_iterations: int = 20,
        max_evaluations: int | None = None,
        tolerance_gradient: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 10,
        line_search: str | None = "strong_wolfe",
        name: str | None = None,
    ) -> None:
        self.max_iterations = _positive("max_iterations", max_iterations)
        if max_evaluations is None:
            max_evaluations = self.max_iterations * 5 // 4
        self.max_evaluations = _positive("max_evaluations", max_evaluations)
        self.history_size = _positive("history_size", history_size)
        if self.history_size > _MOST:
            raise ValueError(f"LBFGS: history_size must be at most {_MOST}, got {history_size!r}")
        if line_search not in ("strong_wolfe", None):
            raise ValueError(f"LBFGS: line_search is 'strong_wolfe' or None, got {line_search!r}")
        self.tolerance_gradient, self.tolerance_change = sizes(
            self, tolerance_gradient=tolerance_gradient, tolerance_change=tolerance_change
        )
        self.line_search = line_search
        self._gradtape_ended = _Ended()
        self._gradtape_repeated = self._gradtape_compared = self._gradtape_warned = False
        pairs = [f"{kind}_{i}" for i in range(self.history_size) for kind in ("steps", "changes")]
        vars(self)["slots"] = ("gradients", "directions", *pairs)
        super().__init__(learning_rate, name)
        self.pairs = Variable(0, trainable=False, name="pairs", dtype="int64")
        self.length = Variable(1.0, trainable=False, name="length", dtype="float64")
        self.scale = Variable(1.0, trainable=False, name="scale", dtype="float64")

    @property
    def stopped(self) -> str | None:
        """The name of the argument that ended the last call of :meth:`minimize`."""
        return self._gradtape_ended.by

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> None:
        """Raise, because the gradients at one point are not enough.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "LBFGS evaluates the loss several times in a step: call minimize(loss, variables) "
            "with a function that returns the loss over all data"
        )

    def minimize(
        self, loss: Any, variables: Iterable[Variable] | Callable[[], Any], tape: Any = None
    ) -> None:
        """Do up to ``max_iterations`` steps that reduce a loss.

        Parameters
        ----------
        loss
            A function without arguments that returns the loss over all data, as a tensor with one
            element. A traced one may be faster.
        variables
            The variables, or a function that returns them and is called after the loss.
        tape
            Must be None, because the loss is evaluated more than once.

        Raises
        ------
        TypeError
            If the loss is not a function that returns a tensor, or the variables do not have one
            real floating dtype.
        ValueError
            If the loss has more than one element, or does not depend on a variable. Also if a line
            search cannot compare its values, because the loss differs from call to call, as with
            dropout. With steps of a fixed length, it is a warning.
        FloatingPointError
            If the loss or its gradient is not finite. As after any exception, the variables keep
            their old values.
        TraceError
            If this is called in a trace.
        """
        if active_graph.get() is not None:
            raise TraceError(
                "LBFGS.minimize cannot be traced: the number of evaluations of the loss depends on "
                "values; call it outside, with a loss that is a gt.function"
            )
        if reducing.get() is not None:
            raise TypeError(
                "LBFGS.minimize: in a data-parallel step, each rank would search along the loss of "
                "its own examples; use another optimizer, or one process"
            )
        if not callable(loss) or tape is not None:
            raise TypeError(
                "LBFGS.minimize: the loss is evaluated several times; pass a function without "
                "arguments that returns it, and no tape"
            )
        if callable(variables):
            loss()
        chosen = list_of_variables(variables)
        dtypes = {variable.dtype for variable in chosen}
        if len(dtypes) != 1 or any(kind_of(dtype) != "f" for dtype in dtypes):
            names = sorted(str(dtype) for dtype in dtypes)
            raise TypeError(f"LBFGS: variables must have one real floating dtype, got {names}")
        places = self.build(chosen)
        before = [variable.array for variable in chosen]
        try:
            descent = _Descent(self, loss, chosen, places)
            self._gradtape_ended = descent.run(self._rate_at(int(self.iterations.array)))
        except BaseException:
            for variable, array in zip(chosen, before, strict=True):
                variable.set_array(array)
            raise


class _Ended(NamedTuple):
    """What ended a call of ``minimize``, and the last loss that it knew.

    The loss is not evaluated after the last step of a fixed length, so the last known loss belongs
    to the values ``at`` before that step.
    """

    by: str | None = None
    loss: float | None = None
    at: Any = None
    variables: Sequence[Variable] = ()


class _Descent:
    """One call of ``minimize``, with all values as vectors."""

    def __init__(
        self, owner: LBFGS, loss: Callable[[], Any], variables: list[Variable], places: list[int]
    ) -> None:
        self.owner = owner
        self.loss = loss
        self.variables = variables
        self.slots = {
            slot: [getattr(owner, slot)[place] for place in places] for slot in owner.slots
        }
        vector, self.unflatten = flatten_to_vector(variables)
        self.x = vector.array
        self.taken = int(owner.iterations.array)
        self.length, self.scale = float(owner.length.array), float(owner.scale.array)
        self.gradient, self.direction = self.held("gradients"), self.held("directions")
        self.pairs: list[_Pair] = []
        for i in range(min(int(owner.pairs.array), owner.history_size)):
            step, change = self.held(f"steps_{i}"), self.held(f"changes_{i}")
            product = float(change @ step)
            if product > 0.0:  # not 0, as the pairs of other variables leave it
                self.pairs.append(_Pair(step, change, 1.0 / product))

    def held(self, slot: str) -> Any:
        """Return the value of a slot as a vector."""
        return flatten_to_vector(self.slots[slot])[0].array

    def set(self, variables: list[Variable], vector: Any) -> None:
        """Set variables to the parts of a vector."""
        for variable, part in zip(variables, self.unflatten(vector), strict=True):
            variable.set_array(part.array)

    def evaluate(self, x: Any) -> tuple[float, Any]:
        """Return the loss and its gradient."""
        self.set(self.variables, x)
        with GradientTape() as tape:
            value = _one_number(self.loss())
        found = tape.gradient(value, self.variables)
        gradients = [checked(g, v) for g, v in zip(found, self.variables, strict=True)]
        return value.item(), flatten_to_vector(gradients)[0].array

    def begun(self) -> tuple[float, Any]:
        """Return the loss and its gradient at the start, if the loss suits the method."""
        owner = self.owner
        before, now = owner._gradtape_ended.loss, self.at_last_known()
        loss, gradient = self.evaluate(self.x)
        _check(loss, gradient)
        now = loss if now is None else now
        if not owner._gradtape_repeated:
            self.repeat(loss)
            owner._gradtape_repeated = True
        elif before is not None and _differ(now, before) and not owner._gradtape_warned:
            owner._gradtape_warned = True
            warn_user(
                f"LBFGS: the loss was {before:.6g} at the end of the last call, and is {now:.6g} "
                "now: the variables, the data or the loss are others, and the directions still "
                "rest on the earlier ones. Give all data in each call, or use a new optimizer",
                RuntimeWarning,
            )
        return loss, gradient

    def at_last_known(self) -> float | None:
        """Return the loss at the values for which the last call knew it; None if it ended there.

        This costs an evaluation, so it is done in the second call only.
        """
        owner, ended = self.owner, self.owner._gradtape_ended
        if ended.at is None:
            return None
        others, found = self.variables, ended.loss
        alike = len(others) == len(ended.variables) and all(map(is_, ended.variables, others))
        if alike and not owner._gradtape_compared:
            self.set(others, ended.at)
            found, owner._gradtape_compared = _one_number(self.loss()).item(), True
        return found

    def repeat(self, loss: float) -> None:
        """Raise or warn if the loss differs when it is evaluated again, as with dropout."""
        again = _one_number(self.loss()).item()
        if not _differ(loss, again):
            return
        text = (
            f"LBFGS: the loss is {loss:.6g} and then {again:.6g} for the same variables, so {{}}. "
            "Call the model with training=False if it has dropout, and return the loss over the "
            "same data each time"
        )
        if self.owner.line_search is not None:
            raise ValueError(text.format("a line search cannot compare points"))
        warn_user(text.format("changes of its gradient do not show its curvature"), RuntimeWarning)

    def run(self, rate: float) -> _Ended:
        """Do the steps, keep the result, and return why they ended."""
        owner, x = self.owner, self.x
        loss, gradient = self.begun()
        evaluations = 1
        by = "max_iterations"
        known: float | None = loss
        before, start = loss, x
        for left in range(owner.max_iterations, 0, -1):
            if _largest(gradient) <= owner.tolerance_gradient:
                by = "tolerance_gradient"
                break
            self.taken += 1
            direction = self.direct(gradient)
            self.gradient = gradient
            first = min(1.0, 1.0 / float(abs(gradient).sum())) if self.taken == 1 else 1.0
            self.length = first * rate
            slope = float(gradient @ direction)
            if slope > -owner.tolerance_change:
                by = "tolerance_change"
                break
            before, start = loss, x
            if owner.line_search is None:
                x = x + direction * self.length
                known = None
                if left > 1:  # the loss after the last step is not needed
                    loss, gradient = self.evaluate(x)
                    _check(loss, gradient)
                    evaluations += 1
                    known = loss
            else:
                point = Point(0.0, loss, gradient, slope)
                most = owner.max_evaluations - evaluations
                found, tried = self.search(x, point, most)
                evaluations += tried
                _, loss, gradient, _ = found
                _check(loss, gradient)
                self.length, known = found.t, loss
                x = x + direction * self.length
            spent = evaluations >= owner.max_evaluations
            changes = [_largest(direction) * abs(self.length)]
            if known is not None:
                changes.append(abs(known - before))
            if min(changes) <= owner.tolerance_change and (self.length or not spent):
                by = "tolerance_change"
                break
            if spent:
                by = "max_evaluations"
                break
        self.keep(x)
        if known is not None:
            return _Ended(by, known)
        return _Ended(by, before, start, self.variables)

    def direct(self, gradient: Any) -> Any:
        """Return the direction of a step, and update the history from the last one."""
        if self.taken == 1:
            self.direction = -gradient
            return self.direction
        change, step = gradient - self.gradient, self.direction * self.length
        product = float(change @ step)
        if product > 1e-10:
            self.pairs = [*self.pairs, _Pair(step, change, 1.0 / product)]
            self.pairs = self.pairs[-self.owner.history_size :]
            self.scale = product / float(change @ change)
        found = -gradient
        parts = []
        for step, change, inverse in reversed(self.pairs):
            part = float(step @ found) * inverse
            found = found - change * part
            parts.append(part)
        found = found * self.scale
        for (step, change, inverse), part in zip(self.pairs, reversed(parts), strict=True):
            found = found + step * (part - float(change @ found) * inverse)
        self.direction = found
        return found

    def search(self, x: Any, start: Point, most: int) -> tuple[Point, int]:
        """Return the point that the line search found, and the number of evaluations."""
        direction = self.direction

        def at(t: float) -> Point:
            loss, gradient = self.evaluate(x + direction * t)
            slope = float(gradient @ direction)
            return Point(t, math.inf if math.isnan(loss + slope) else loss, gradient, slope)

        narrow = self.owner.tolerance_change / (_largest(direction) or 1.0)
        return strong_wolfe(at, start, self.length, most, narrow)

    def keep(self, x: Any) -> None:
        """Assign the results to the variables and the optimizer."""
        owner = self.owner
        self.set(self.variables, x)
        self.set(self.slots["gradients"], self.gradient)
        self.set(self.slots["directions"], self.direction)
        for i, (step, change, _) in enumerate(self.pairs):
            self.set(self.slots[f"steps_{i}"], step)
            self.set(self.slots[f"changes_{i}"], change)
        owner.pairs.assign(len(self.pairs))
        owner.iterations.assign(self.taken)
        owner.length.assign(self.length)
        owner.scale.assign(self.scale)


def _one_number(loss: Any) -> Tensor:
    """Return a loss, after checking that it is a tensor with one element."""
    if not isinstance(loss, (Tensor, ValueHolder)):
        raise TypeError(
            f"LBFGS.minimize: the loss must return a tensor, got {type(loss).__name__}; compute it "
            "with gradtape's functions, without float() and numpy()"
        )
    value = as_tensor(loss)
    if math.prod(value.shape) != 1:
        raise ValueError(
            f"LBFGS.minimize: the loss must be one number, got shape {value.shape}; use gt.mean"
        )
    return value


def _differ(a: float, b: float) -> bool:
    """Return whether two losses differ by more than rounding does in single precision."""
    return abs(a - b) > 1e-4 * max(abs(a), abs(b)) + 1e-12


def _check(loss: float, gradient: Any) -> None:
    largest = _largest(gradient)
    if not (math.isfinite(loss) and math.isfinite(largest)):
        steep = f"an element of the gradient is {largest}"
        told = steep if math.isfinite(loss) else f"the loss is {loss}"
        raise FloatingPointError(
            f"LBFGS: {told}; a smaller learning rate, or line_search='strong_wolfe', may help. The "
            "variables are as they were before this call"
        )


def _largest(vector: Any) -> float:
    return float(abs(vector).max()) if vector.shape[0] else 0.0


def _positive(argument: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < 1:
        raise ValueError(f"LBFGS: {argument} must be a positive integer, got {value!r}")
    return operator.index(value)
