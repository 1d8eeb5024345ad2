"""One program of XLA for all devices of a job, and variables with a copy on every device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary
from zlib import crc32

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun

from ...core.errors import DistributedError
from ...core.extend import (
    Output,
    Variable,
    as_one_program,
    exclusive,
    forward_only,
    has_unknown_sizes,
    joined_pulls,
    registry,
    set_arrays,
    stop_request,
    to_numpy,
)
from .compiling import CompilerInputs, free, references

if TYPE_CHECKING:
    from .backend import JaxBackend
    from .communicator import JaxCommunicator

# -- variables -------------------------------------------------------------------------------------


def checksum(array: Any, start: int = 0) -> int:
    """Return a checksum of the values of arrays."""
    host = np.ascontiguousarray(to_numpy(array)).reshape(-1)
    return crc32(host.view(np.uint8).data, start)


class Replica:
    """The copies of a variable's array.

    The variable itself holds the copy on this process's first device. Eager code, files and other
    backends use it like any array, without the other processes.
    """

    __slots__ = ("__weakref__", "view", "whole")

    def __init__(self) -> None:
        self.view: Any = None
        self.whole: Any = None

    def hold(self, whole: Any) -> Any:
        """Store the array on all devices, and return the copy on the first one."""
        self.whole = whole
        self.view = whole.addressable_data(0) if whole.sharding.num_devices > 1 else whole
        return self.view


class Replicas:
    """The variables that are on all devices, with their arrays.

    Parameters
    ----------
    group
        The group that has the devices.
    """

    def __init__(self, group: JaxCommunicator) -> None:
        self._group = group
        #: By the variables' ids; programs keep them alive.
        self._of: WeakValueDictionary[int, Replica] = WeakValueDictionary()
        probe = Replica()
        probe.hold(group.put(np.zeros(1), group.everywhere, (1,)))
        #: The number of references to an array that only a variable and its replica hold.
        self.alone = references(probe.view)

    def of(self, variable: Variable) -> Replica:
        """Return the replica of a variable, which is empty at first."""
        found = self._of.get(variable.id)
        if found is None:
            found = self._of[variable.id] = Replica()
        return found

    def first(self, variables: Sequence[Variable]) -> None:
        """Put variables on all devices with the values of process 0; collective.

        The values have been found equal on all processes, except for streams of random numbers:
        these need not have equal seeds, and continue as those of process 0.
        """
        group = self._group
        arrays = [np.ascontiguousarray(to_numpy(variable.array)) for variable in variables]
        if group.size > 1:
            flat = np.concatenate([array.reshape(-1).view(np.uint8) for array in arrays])
            flat = group.broadcast(flat)
            ends = np.cumsum([array.nbytes for array in arrays])
            arrays = [
                part.view(array.dtype).reshape(array.shape)
                for part, array in zip(np.split(flat, ends[:-1]), arrays, strict=True)
            ]
        self._place(variables, arrays)

    def again(self, variables: Sequence[Variable]) -> str:
        """Put variables that were written since then on all devices; describe their values."""
        arrays = [np.ascontiguousarray(to_numpy(variable.array)) for variable in variables]
        self._place(variables, arrays)
        pairs = zip(variables, arrays, strict=True)
        return ", ".join(f"{v.name!r} as {checksum(array):08x}" for v, array in pairs)

    def _place(self, variables: Iterable[Variable], arrays: Iterable[Any]) -> None:
        for variable, array in zip(variables, arrays, strict=True):
            # XLA may write into it
            whole = self._group.put(array, self._group.everywhere, array.shape, alias=False)
            # the same value on other devices: a tape need not record it
            set_arrays([variable], [self.of(variable).hold(whole)])


# -- programs --------------------------------------------------------------------------------------


#: The outcome of a run: success, a loss that is not finite, or processes that disagree.
_WELL, NOT_FINITE, DISAGREE = range(3)
#: Added to it if a process requests that the run ends.
_WISH = 4


class WholeProgram:
    """A trace of a step for the whole batch, compiled for all devices.

    Variables are on every device, inputs are split along their first axis, and XLA adds the
    communication between devices. If there are several processes, the program begins with a number
    from each of them, and continues only if the numbers are equal: otherwise processes with
    different programs would wait for each other forever. If a loss is not finite, variables get
    their old values inside the program, because their old arrays may no longer exist.

    Parameters
    ----------
    group
        The group that has the devices.
    concrete
        The trace, of a function that returns ``(results, whether losses are finite)``.
    rows
        The number of examples of the batch if outputs with as many rows stay on the devices of
        their examples; otherwise None.
    """

    def __init__(self, group: JaxCommunicator, concrete: Any, rows: int | None) -> None:
        self._group = group
        self._owner = cast("JaxBackend", registry().backend("jax"))
        self.scope = self._owner.scope
        graph = concrete.graph
        self._finite = concrete.results[1]
        program = joined_pulls(forward_only(graph))
        self._inputs = [symbol.name or f"argument {i}" for i, symbol in enumerate(program.inputs)]
        with self._owner.scope():
            constants = {x: jnp.asarray(to_numpy(a)) for x, a in program.constants.items()}
        parts = self._parts = CompilerInputs(self._owner, program, constants)
        self.held = exclusive(program.updates)
        self._old = list(dict.fromkeys([*parts.donated, *parts.writes]))
        place = {variable: i for i, variable in enumerate(self._old)}
        self._places = [place[variable] for variable in parts.writes]
        self._open = {v for v, symbol in program.updates.items() if has_unknown_sizes(symbol.shape)}
        self.digest = _digest(graph)
        replica = group.replicas.of
        self._old_copies = [replica(variable) for variable in self._old]
        self._kept_copies = [replica(variable) for variable in parts.kept]
        self._all = [
            *zip(self._old, self._old_copies, strict=True),
            *zip(parts.kept, self._kept_copies, strict=True),
        ]
        where = [
            group.rows if rows and x.shape and x.shape[0] == rows else group.everywhere
            for x in program.outputs
        ]
        steps = self._checked if group.size > 1 else self._step
        shardings = (group.everywhere, where, group.everywhere)
        self._compiled = jax.jit(steps, out_shardings=shardings)
        self._donating = jax.jit(steps, out_shardings=shardings, donate_argnums=0)
        self._large = [
            group.put(np.asarray(x), group.everywhere, x.shape, alias=False) for x in parts.large
        ]
        self._tickets: tuple[int, Any] = (0, None)

    # -- the function that JAX traces --------------------------------------------------------------

    def _step(self, old: Any, rest: Any, more: Any, ticket: Any, inputs: Any) -> Any:
        """Return the variables' new arrays, the outputs and the outcome."""
        with as_one_program():
            outputs, updates = self._parts(old[: len(self._parts.donated)], rest, more, inputs)
        if not isinstance(self._finite, Output):
            return updates, outputs, jnp.int32(_WELL)
        finite = outputs[self._finite.index]
        kept = [
            new if variable in self._open else lax.select(finite, new, old[place])
            for variable, place, new in zip(self._parts.writes, self._places, updates, strict=True)
        ]
        return kept, outputs, lax.select(finite, jnp.int32(_WELL), jnp.int32(NOT_FINITE))

    def _checked(self, old: Any, rest: Any, more: Any, ticket: Any, inputs: Any) -> Any:
        """Run the step if all processes have the same ticket."""
        most = jnp.max(ticket, axis=0)
        given = (old, rest, more, None, inputs)
        jaxpr, shapes = jax.make_jaxpr(self._step, return_shape=True)(*given)
        (new, outputs, _), tree = shapes, jax.tree.structure(shapes)

        def go_on() -> list[Any]:
            return list(jaxpr_as_fun(jaxpr)(*jax.tree.leaves(given)))

        def stop() -> list[Any]:
            before = [
                jnp.zeros(x.shape, x.dtype) if variable in self._open else old[place]
                for variable, place, x in zip(self._parts.writes, self._places, new, strict=True)
            ]
            nothing = [jnp.zeros(x.shape, x.dtype) for x in outputs]
            return [*before, *nothing, jnp.int32(DISAGREE)]

        apart = most[0] + most[1]  # 1 if a process requests the end, more if numbers differ
        new, outputs, state = jax.tree.unflatten(tree, lax.cond(apart <= 1, go_on, stop))
        return new, outputs, state + _WISH * (apart == 1).astype(jnp.int32)

    # -- running -----------------------------------------------------------------------------------

    def not_placed(self) -> list[Variable]:
        """Return the variables that are not on the devices yet."""
        return [variable for variable, copy in self._all if copy.whole is None]

    def written(self) -> list[Variable]:
        """Return the variables that were written elsewhere since they were put on the devices."""
        return [variable for variable, copy in self._all if variable.array is not copy.view]

    def run(self, inputs: Sequence[Any], description: str) -> tuple[list[Any], int]:
        """Run, and assign the variables on success.

        Parameters
        ----------
        inputs
            Global arrays.
        description
            A description that must be equal on all processes.

        Returns
        -------
        outputs, state
            Global arrays, and the outcome: 0, ``NOT_FINITE`` or ``DISAGREE``.
        """
        views = [variable.array for variable in self._old]
        may_donate = not self._open and free(self._old, views, self._group.replicas.alone)
        del views
        given = (
            [copy.whole for copy in self._old_copies],
            [copy.whole for copy in self._kept_copies],
            self._large,
            self._ticket(description),
            list(inputs),
        )
        try:
            return self._donated(given) if may_donate else self._copied(given)
        except jax.errors.JaxRuntimeError as error:
            raise self._broken(error) from error

    def _copied(self, given: Any) -> tuple[list[Any], int]:
        """Run, and assign the new arrays on success."""
        found = self._compiled(*given)
        state = self._state(found)
        if state == _WELL:
            self._assign(found[0])
        return found[1], state

    def _donated(self, given: Any) -> tuple[list[Any], int]:
        """Run on arrays that XLA may overwrite, and assign the arrays that it returns."""
        found: list[Any] = []
        try:
            # the old arrays are gone when it returns, before any Python step
            found.extend(map(self._donating, *([x] for x in given)))
            self._assign(found[0][0])
        except BaseException:  # a signal: repeat the assignment that it interrupted
            if found:
                self._assign(found[0][0])
            raise
        return found[0][1], self._state(found[0])

    def _assign(self, arrays: Sequence[Any]) -> None:
        """Assign the variables' new arrays."""
        if self._open:
            for variable, array in zip(self._parts.writes, arrays, strict=True):
                variable.check_shape(array.shape)
        copies = [self._old_copies[place] for place in self._places]
        set_arrays(
            self._parts.writes, [copy.hold(x) for copy, x in zip(copies, arrays, strict=True)]
        )

    def _state(self, found: Any) -> int:
        """Return the outcome of a run, once it has ended."""
        state = int(np.asarray(found[2].addressable_data(0)))
        asking = stop_request.get()
        if asking is not None and (state & _WISH or (self._group.size == 1 and asking.asked)):
            asking.granted = True
        return state & ~_WISH

    def _ticket(self, description: str) -> Any:
        if self._group.size == 1:
            return None
        asking = stop_request.get()
        code = 2 * crc32(description.encode()) + (asking is not None and asking.asked)
        if self._tickets[1] is None or self._tickets[0] != code:
            self._tickets = (code, self._group.ticket(code))
        return self._tickets[1]

    def _broken(self, error: Exception) -> Exception:
        if self._group.size == 1:
            return error
        return DistributedError(
            f"data_parallel: rank {self._group.rank} of {self._group.size} lost the others in a "
            f"step: {str(error).splitlines()[0]}. Begin again from the last checkpoint"
        )

    def not_finite(self, name: str, inputs: Sequence[Any]) -> str:
        """Return the message for a loss that is not finite; collective.

        Parameters
        ----------
        name
            The step's name.
        inputs
            This process's parts of the inputs.
        """
        wrong = [
            label
            for label, x in zip(self._inputs, inputs, strict=True)
            if np.dtype(x.dtype).kind in "fc" and not np.isfinite(to_numpy(x)).all()
        ]
        found = self._group.exchange(", ".join(wrong).encode())
        told = [f"rank {i} was given {x.decode()}" for i, x in enumerate(found) if x]
        blame = f", and {'; '.join(told)} with NaN or infinity" if told else ""
        return (
            f"data_parallel: the loss of {name} is not finite{blame}; a smaller learning rate, or "
            "scaled inputs, may help. The optimizer has taken no step"
        )


def _digest(graph: Any) -> str:
    """Return a number that is the same in all processes that traced the same program."""
    code = crc32(str(graph).encode())
    for array in graph.constants.values():
        code = checksum(array, code)
    return f"program {code:08x}"
