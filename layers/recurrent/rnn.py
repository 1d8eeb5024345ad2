"""Recurrent layers: a cell, or stacked cells, run over the steps of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, ClassVar, Unpack

import numpy as np

from ...core.extend import (
    Module,
    Policy,
    Variable,
    add_to_loss,
    as_tensor,
    call_replaced,
    collecting,
    functions,
    known_size,
    ops,
    sizes_differ,
)
from ..base.calls import in_policy, takes_training
from ..base.configured import Configured
from ..base.layer import Elsewhere
from ..base.weights import Rules, check_part
from .cells import Cell, zeros_on_device_of

__all__ = ["RNN", "StackedRNNCells"]


class StackedRNNCells(Configured, saved_as="layers.StackedRNNCells"):
    """Stacked cells as one cell.

    Parameters
    ----------
    cells
        The cells, starting from the inputs.

    Raises
    ------
    TypeError
        If one is not a cell.

    Examples
    --------
    >>> cell = gt.layers.StackedRNNCells([gt.layers.GRUCell(4), gt.layers.GRUCell(2)])
    >>> gt.layers.RNN(cell)(gt.ones((3, 5, 6))).shape
    (3, 2)
    """

    _gradtape_internal = "initial_states masks state_dtypes"

    takes_integers = True
    takes_policy = False
    cells: list[Any]

    def __init__(
        self, cells: Sequence[Any] = (), name: str | None = None, **rules: Unpack[Rules]
    ) -> None:
        super().__init__(name, **rules)
        self.cells = [_checked("StackedRNNCells", cell) for cell in cells]

    def check_restored(self) -> list[Any]:
        """Raise if what a file set are not cells; return them."""
        if not isinstance(self.cells, list) or not self.cells:
            raise TypeError(f"'cells' is no list of cells: {self.cells!r}"[:200])
        return [check_part("cells", cell, "state_size") for cell in self.cells]

    @property
    def built(self) -> bool:
        """Whether every cell is built."""
        return all(getattr(cell, "built", True) for cell in self.cells)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """None of its own."""
        return ()

    @property
    def names_elsewhere(self) -> Elsewhere:  # type: ignore[override]
        """In PyTorch, the weights of all cells are in one layer, and have numbers."""
        forms = {f"cells/{i}": ("{}_l" + str(i), None) for i in range(len(self.cells))}
        return {"pytorch": forms} if len({type(cell) for cell in self.cells}) == 1 else {}

    @property
    def state_size(self) -> tuple[int, ...]:
        """The lengths of all states."""
        return tuple(n for cell in self.cells for n in _sizes(cell))

    @property
    def state_dtypes(self) -> tuple[str | None, ...]:
        """The dtypes of all states, None for the dtype of the cell's input."""
        policies = [getattr(cell, "policy", None) for cell in self.cells]
        low = [getattr(x, "compute_dtype", None) == "float16" for x in policies]
        pairs = zip(self.cells, low, strict=True)
        return tuple("float16" if half else None for cell, half in pairs for _ in _sizes(cell))

    @property
    def output_size(self) -> int:
        """The length of the last cell's output."""
        return _width(self.cells[-1])

    def build(self, input_shape: Any) -> None:
        """Build every cell for the output of the one before."""
        for cell in self.cells:
            self.build_part(cell, input_shape)
            input_shape = (input_shape[0], _width(cell))

    def initial_states(self, x: Any) -> list[Any]:
        """Return zeros, for inputs ``x`` of one step."""
        dtype = x.dtype if x.dtype.kind == "f" else self.variables[0].dtype
        known, found = iter(self.state_dtypes), []
        for cell in self.cells:  # each one computes in the widest dtype so far
            dtype = np.result_type(dtype, *(v.dtype for v in cell.variables if v.dtype.kind == "f"))
            found += [zeros_on_device_of(x, n, next(known) or dtype) for n in _sizes(cell)]
        return found

    initial_states.gives_zeros = True  # type: ignore[attr-defined]

    def masks(self, x: Any, training: Any) -> list[Any]:
        """Return the masks of every cell, for inputs ``x`` of one step: the same at each step."""
        found = []
        for cell in self.cells:
            found.append(cell.masks(x, training) if inlined(cell) else None)
            x = zeros_on_device_of(x, _width(cell), x.dtype)
        return found

    def call(
        self, x: Any, states: Any, training: bool = False, masks: Any = None
    ) -> tuple[Any, list[Any]]:
        """Run a step of every cell, with the result of :meth:`masks`, or with the cells' masks."""
        after: list[Any] = []
        for cell, own in zip(self.cells, masks or self.masks(x, training), strict=True):
            count = len(_sizes(cell))
            given = list(states[len(after) : len(after) + count])
            if own:
                x, new = in_policy(type(cell).masked, cell, x, given, own)
            else:
                x, new = called(cell, x, given, training)
            after += new
        return x, after

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, without the cells."""
        return {"name": self.name, **self.rules_given()}


def _checked(layer: str, cell: Any) -> Any:
    """Return a cell; raise for another object, which could hide variables from training."""
    if not isinstance(cell, Module) or not hasattr(cell, "state_size"):
        raise TypeError(f"{layer}: a cell must be a layer with state_size, got {cell!r}")
    return cell


def inlined(cell: Any) -> bool:
    """Return whether layers run the parts of a cell's step instead of calling the cell.

    A user's class may compute something else in its ``call``, and files need its calls. But
    a cell that drops out without a ``call`` of its own drops the same elements at every step.
    """
    if not isinstance(cell, Cell) or call_replaced(cell):
        return False
    kind = type(cell)
    own = kind.call is not Cell.call or kind.masked is not Cell.masked
    drops = cell.input_dropout is not None or cell.state_dropout is not None
    return not own and (kind.saved_as is not None or drops)


def called(cell: Any, x: Any, states: list[Any], training: Any) -> tuple[Any, list[Any]]:
    """Return the result of a cell of any class, passing ``training`` if it takes that."""
    told = {"training": training} if takes_training(cell) else {}
    y, after = cell(x, states, **told)
    return y, list(after) if isinstance(after, (list, tuple)) else [after]


def _width(cell: Any) -> int:
    size = getattr(cell, "output_size", None)
    return int(_sizes(cell)[0] if size is None else size)


def _sizes(cell: Any) -> tuple[int, ...]:
    size = cell.state_size
    return (size,) if isinstance(size, int) else tuple(size)


# -- a cell over steps ----------------------------------------------------------------------------


class RNN(Configured, saved_as="layers.RNN"):
    """Run a cell along the second axis of ``(batch, steps, features)``.

    Parameters
    ----------
    cell
        A layer with ``state_size``, ``output_size`` and ``call(x, states)``, which returns an
        output and the next states; or a list of them, to be stacked.
    return_sequences
        Whether to return the outputs of all steps; by default only the last.
    return_state
        Whether to return the last states too, after the output.
    go_backwards
        Whether to start with the last step; outputs are then in that order.
    stateful
        Whether the states after a batch are the initial states of the next one; all batches must
        then have the same size. Validation, ``evaluate`` and ``predict`` begin with these states
        and leave them as they are.
    unroll
        Whether a trace contains each step separately, which takes more time and memory to trace.

    Attributes
    ----------
    cell : Layer
        The cell.
    states : list of Variable
        The states of a stateful layer.

    Raises
    ------
    TypeError
        If ``cell`` is not a cell.
    ValueError
        At the call, if the input does not have three axes.

    Examples
    --------
    >>> layer = gt.layers.RNN(gt.layers.LSTMCell(4), return_sequences=True)
    >>> layer(gt.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    takes_integers = True
    takes_policy = False
    #: :meth:`compute_mask` passes masks on and makes none.
    makes_mask: ClassVar[bool] = False
    cell: Any
    states: list[Variable] | None = None

    def __init__(
        self,
        cell: Any = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        name: str | None = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, **rules)
        cell = StackedRNNCells(cell) if isinstance(cell, Sequence) else cell
        if cell is not None:  # a file brings it
            self.cell = _checked("RNN", cell)
        self.return_sequences = bool(return_sequences)
        self.return_state = bool(return_state)
        self.go_backwards = bool(go_backwards)
        self.stateful = bool(stateful)
        self.unroll = bool(unroll)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, without the cell."""
        return {name: value for name, value in super().get_config().items() if name != "cell"}

    @property
    def names_elsewhere(self) -> Elsewhere:  # type: ignore[override]
        """In PyTorch, weights have the layer's number, and there are no stateful layers."""
        cell = self.cell
        if isinstance(cell, StackedRNNCells):
            return {"pytorch": {"cell": ("", None), "states": None}}
        known = "pytorch" in getattr(cell, "names_elsewhere", {})
        return {"pytorch": {"cell": ("{}_l0" if known else "cell", None), "states": None}}

    @property
    def policy(self) -> Policy:
        """The policy of the cell."""
        return getattr(self.cell, "policy", super().policy)

    @property
    def built(self) -> bool:
        """Whether the cell is built and the states exist."""
        built = bool(getattr(self.cell, "built", True))
        return built and (self.states is not None or not self.stateful)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """None: the weights are those of the cell."""
        return ()

    def check_restored(self) -> list[Any]:
        """Raise if what a file set is not a cell or its states; return the cell."""
        super().check_restored()
        cell = check_part("cell", vars(self).get("cell"), "state_size")
        if isinstance(cell, StackedRNNCells):
            cell.check_restored()
        states = self.states
        if states is not None:
            sizes = _sizes(self.cell)
            fit = isinstance(states, list) and len(states) == len(sizes)
            if not fit or any(
                not isinstance(x, Variable) or len(x.shape) != 2 or x.shape[1] != n
                for x, n in zip(states, sizes)
            ):
                raise ValueError(f"'states' are not those of its cell, of sizes {sizes}")
        return [cell]

    def build(self, input_shape: Any) -> None:
        """Build the cell, and create the states of a stateful layer."""
        self._check(input_shape)
        self.build_part(self.cell, (input_shape[0], input_shape[-1]))
        if self.stateful:
            if not known_size(input_shape[0]):
                raise ValueError(
                    f"layer {self.name!r} ({type(self).__name__}): a stateful layer needs a batch "
                    f"of known size when it is first called, got shape {input_shape}"
                )
            self.states = [
                self.add_weight((input_shape[0], n), "zeros", f"state_{i}", trainable=False)
                for i, n in enumerate(_sizes(self.cell))
            ]

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the results, in their order; None if there is only the last."""
        if mask is None or not self.return_sequences:
            return None
        return ops["flip"](as_tensor(mask), axis=1) if self.go_backwards else mask

    def reset_states(self) -> None:
        """Set the states of a stateful layer to zero."""
        for state in self.states or ():
            state.assign(np.zeros(state.shape, state.dtype.name))

    #: The newer name in Keras.
    reset_state = reset_states

    def _check(self, shape: Any) -> None:
        if shape is not None and len(shape) != 3:
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): expected inputs of shape "
                f"(batch, steps, features), got {shape}"
            )

    def call(
        self, x: Any, initial_state: Any = None, mask: Any = None, training: bool = False
    ) -> Any:
        """Run the cell over the steps of ``x``.

        Parameters
        ----------
        x
            Shape ``(batch, steps, features)``.
        initial_state
            The states before the first step; zeros, or those of a stateful layer, by default.
        mask
            Shape ``(batch, steps)``: where it is false, states do not change, and the output is
            that of the previous step.
        training
            Whether dropout is active.
        """
        self._check(x.array.shape)
        if self.states:
            x = self.fitted(x, {0: self.states[0].shape[0]})
        states = self._before(x, initial_state)
        dtypes = getattr(self.cell, "state_dtypes", (None,) * len(states))
        states = [s if t is None else s.astype(t) for s, t in zip(states, dtypes, strict=True)]

        def run(cell: Any, *given: Any) -> Any:
            return self._run(*given)

        # steps of gradtape's own cells are inlined here instead of calling the cells
        last, outputs, states = in_policy(run, self.cell, x, states, mask, training)
        if self.states is not None:
            for variable, value in zip(self.states, states, strict=True):
                variable.assign(value)
        result = outputs if self.return_sequences else last
        return (result, *states) if self.return_state else result

    def _before(self, x: Any, initial: Any) -> list[Any]:
        sizes = _sizes(self.cell)
        if initial is not None:
            given = list(initial) if isinstance(initial, (list, tuple)) else [initial]
            if len(given) != len(sizes):
                raise ValueError(
                    f"layer {self.name!r} ({type(self).__name__}): its cell has {len(sizes)} "
                    f"states, got {len(given)}"
                )
            given = [as_tensor(state) for state in given]
            for state, n in zip(given, sizes):
                self._check_state(state.array.shape, (x.array.shape or (None,))[0], n)
            return given
        if self.states is not None:
            return [state.value for state in self.states]
        row = _row(x)
        if hasattr(self.cell, "initial_states"):
            return list(self.cell.initial_states(row))
        dtype = x.dtype if x.dtype.kind == "f" else self.cell.variables[0].dtype
        return [zeros_on_device_of(row, n, dtype) for n in sizes]

    def _check_state(self, shape: Any, batch: Any, size: int) -> None:
        if shape is None or (len(shape) == 2 and not any(map(sizes_differ, shape, (batch, size)))):
            return
        raise ValueError(
            f"layer {self.name!r} ({type(self).__name__}): expected a state of shape "
            f"({batch}, {size}), got {shape}"
        )

    def _run(self, x: Any, states: list[Any], mask: Any, training: Any) -> tuple[Any, Any, Any]:
        """Return the last output, all outputs if requested, and the last states."""
        cell = self.cell
        along: Any = ops["swapaxes"](x, axis1=0, axis2=1)
        if inlined(cell):
            dropped, kept = cell.masks(_row(x), training)
            along = cell.projected(along if dropped is None else along * dropped)

            def step(row: Any, before: list[Any]) -> tuple[Any, list[Any], list[Any]]:
                return *cell.step(row, before, kept), []
        else:
            if isinstance(cell, StackedRNNCells):
                masks = cell.masks(_row(x), training)
                dropping = any(part is not None for pair in masks for part in pair or ())
                # a user's class may take no masks, and its traces would need them
                cell = partial(cell, training=training, **({"masks": masks} if dropping else {}))

            def step(row: Any, before: list[Any]) -> tuple[Any, list[Any], list[Any]]:
                with collecting(self.cell) as added:
                    y, after = called(cell, row, before, training)
                return y, after, [reduce(ops["add"], added)] if added else []

        # the first state of some cells is their last output, unless steps are masked
        alone = inlined(cell) and _state_is_output(cell) and mask is None

        def body(carry: Any, scanned: Any) -> tuple[Any, Any]:
            before, last = carry
            row, seen = scanned if mask is not None else (scanned, None)
            y, after, terms = step(row, before)
            if seen is not None:
                seen = ops["expand_dims"](seen, axis=-1)
                y = ops["where"](seen, y, last[0])
                after = [ops["where"](seen, a, b) for a, b in zip(after, before, strict=True)]
            rows = [y] * self.return_sequences + terms
            return (after, [] if alone else [y]), rows or None

        first = (
            [] if alone else [zeros_on_device_of(states[0], _width(self.cell), states[-1].dtype)]
        )
        if mask is not None:
            along = (along, ops["swapaxes"](self._fitting(mask, x), axis1=0, axis2=1))
        if self.unroll:
            carry, outputs = _unrolled(body, (states, first), along, self.go_backwards)
        else:
            carry, outputs = functions["scan"](
                body, (states, first), along, reverse=self.go_backwards
            )
        states, last = carry
        last = states[0] if alone else last[0]
        rest = list(outputs or ())
        outputs = None
        if self.return_sequences:
            outputs = ops["swapaxes"](rest.pop(0), axis1=0, axis2=1)
            if self.go_backwards:
                outputs = ops["flip"](outputs, axis=1)
        for term in rest:  # what the cell added to the loss at each step
            add_to_loss(self.cell, ops["sum"](term))
        return last, outputs, states

    def _fitting(self, mask: Any, x: Any) -> Any:
        mask = as_tensor(mask)
        given, wanted = mask.array.shape, (x.array.shape or (None, None))[:2]
        if given is None or len(given) != 2 or any(map(sizes_differ, given, wanted)):
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): expected a mask of shape "
                f"(batch, steps), got {given} for inputs of shape {x.array.shape}"
            )
        return mask.astype("bool")


def _state_is_output(cell: Any) -> bool:
    """Return whether the class that defines a cell's step, or one below, says so."""
    for cls in type(cell).__mro__:
        if "state_is_output" in vars(cls):
            return bool(cls.state_is_output)  # type: ignore[attr-defined]
        if "step" in vars(cls):
            return False
    return False


def _row(x: Any) -> Any:
    """Return an array of the shape of one step, even if there are no steps."""
    return ops["sum"](x[:, :1], axis=1)


def _unrolled(body: Any, carry: Any, along: Any, backwards: bool) -> tuple[Any, Any]:
    """Do the same as ``scan``, step by step."""
    several = isinstance(along, tuple)
    parts = along if several else (along,)
    steps = range(int(parts[0].shape[0]))
    rows = []
    for i in reversed(steps) if backwards else steps:
        at = tuple(part[i] for part in parts)
        carry, y = body(carry, at if several else at[0])
        rows.append(y)
    if not rows or rows[0] is None:
        return carry, None
    ordered = rows[::-1] if backwards else rows
    return carry, [ops["stack"](*column, axis=0) for column in zip(*ordered, strict=True)]
