"""``XlaStep``: a training step that runs as one program over the batch of all processes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from ...core.errors import DistributedError, TraceError
from ...core.extend import (
    F,
    Function,
    Output,
    Stream,
    Tensor,
    TensorSpec,
    Variable,
    active_graph,
    as_one_program,
    as_tensor,
    check_by_rank,
    describe,
    flatten,
    is_transformed,
    map_structure,
    pack_like,
    public_package,
    reducing,
    to_numpy,
    told_by_ranks,
    without_examples,
)
from .compiling import Refused
from .spmd import DISAGREE, NOT_FINITE, WholeProgram, checksum

if TYPE_CHECKING:
    from .communicator import JaxCommunicator


class XlaStep:
    """A training step that is traced for the batch of all processes, and compiled by XLA.

    Parameters
    ----------
    group
        The group that has the devices.
    step
        The step, written for one process.
    compile
        True: there is no other way to run it.
    outputs
        ``"mean"``: outputs are those of the whole batch. ``"local"``: arrays with a row for each
        example are reduced to the rows of this process.
    meet
        A function that receives variables before they are first put on the devices.
    reduction, timeout
        Have no effect, because there is one loss, of the whole batch.
    """

    def __init__(
        self,
        group: JaxCommunicator,
        step: Callable[..., Any],
        *,
        compile: bool = True,
        outputs: str = "mean",
        reduction: str = "mean",
        timeout: float | None = None,
        meet: Callable[[list[Variable]], None] | None = None,
    ) -> None:
        self._meet = meet
        self.name = str(getattr(step, "__name__", type(step).__name__))
        if not compile:
            raise ValueError(
                f"data_parallel: the engine 'jax' compiles {self.name} for all its devices, and "
                "has no other way to run it: leave compile=False out"
            )
        self._group, self._local_outputs = group, outputs == "local"
        self._function: Any = Function(_watched(step), None, self.name)
        self._programs: dict[int, tuple[Any, WholeProgram]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on this process's part of the batch; collective."""
        return self.run(args, kwargs)

    def run(self, args: Any, kwargs: Any, whole: bool = False) -> Any:
        """Run on this process's part of the batch; collective.

        Parameters
        ----------
        args, kwargs
            The step's arguments.
        whole
            Whether each process has all rows of the batch already.
        """
        check_by_rank(f"the data-parallel step {self.name}")
        signature = self._function.signature
        if kwargs or len(args) != len(signature.parameters):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        leaves = flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, _ARRAYS)]
        arrays = [self._raw(leaves[i]) for i in places]
        rows = next((array.shape[0] for array in arrays if array.ndim), None)
        if rows == 0:
            raise ValueError(without_examples([self._group.rank], self._group.size))
        parts = [bool(array.ndim) and array.shape[0] == rows for array in arrays]
        total = (rows or 0) * (1 if whole else self._group.size)
        if not whole and self._group.size > 1 and total % self._group.devices:
            arrays, whole = self._gathered(arrays, parts), True
        for i, array, part in zip(places, arrays, parts, strict=True):
            shape = (total, *array.shape[1:]) if part else array.shape
            leaves[i] = TensorSpec(shape, array.dtype)
        args, kwargs = pack_like((args, kwargs), leaves)
        concrete = self._function.get_concrete_function(*args, **kwargs)
        program = self._program(concrete, total)
        with program.held, program.scope():
            outputs = self._outputs(program, arrays, parts, total, whole)
        if self._local_outputs:
            outputs = [self._own_rows(x, total) for x in outputs]
        else:
            outputs = [x.addressable_data(0) for x in outputs]
        return map_structure(
            lambda leaf: Tensor(outputs[leaf.index]) if isinstance(leaf, Output) else leaf,
            concrete.results[0],
        )

    def _raw(self, leaf: Any) -> Any:
        if active_graph.get() is not None or (
            isinstance(leaf, Tensor) and is_transformed(leaf.array)
        ):
            raise TraceError(
                f"data_parallel: {self.name} is compiled for all devices as a whole, and cannot be "
                "called in a trace or a batch of vmap; call it outside"
            )
        if type(leaf) is np.ndarray and leaf.dtype.isnative:
            return leaf
        return as_tensor(leaf).array

    def _gathered(self, arrays: list[Any], parts: list[bool]) -> list[Any]:
        """Return the rows of all processes, if their number is not divisible by the devices'."""
        group = self._group
        self._agree(f"gathered {self._on(arrays)} for {self.name}")
        return [
            group.all_gather(_host(x)).reshape(-1, *x.shape[1:]) if part else x
            for x, part in zip(arrays, parts, strict=True)
        ]

    def _program(self, concrete: Any, total: int) -> WholeProgram:
        found = self._programs.get(id(concrete))
        if found is None:
            cut = self._local_outputs and total % self._group.devices == 0
            made = WholeProgram(self._group, concrete, total if cut else None)
            found = self._programs[id(concrete)] = (concrete, made)
        return found[1]

    def _outputs(
        self, program: WholeProgram, arrays: list[Any], parts: list[bool], total: int, whole: bool
    ) -> list[Any]:
        """Run a program, and return its outputs on success."""
        group = self._group
        description = self._step_text(program, arrays, parts, whole) if group.size > 1 else ""
        new = program.not_placed()
        if new:
            if description:
                self._agree(f"{description}, of {len(new)} new variables")
            if self._meet is not None:
                self._meet([v for v in new if not isinstance(v, Stream)])
            group.replicas.first(new)
        written = program.written()
        if written:
            told = group.replicas.again(written)
            description = f"{description}, with {told}" if description else ""
        cut = group.rows if total % group.devices == 0 else group.everywhere
        placed = [
            group.place(x, cut if part else group.everywhere, total, whole)
            for x, part in zip(arrays, parts, strict=True)
        ]
        try:
            outputs, state = group.run_step(description, lambda: program.run(placed, description))
        except Refused as error:
            raise TypeError(
                f"data_parallel: XLA cannot compile {self.name}: {error}. The engine 'jax' has no "
                "other way to run it; the engine 'mpi' has"
            ) from error
        if state == DISAGREE:
            self._disagree(description)
        if state == NOT_FINITE:
            raise FloatingPointError(program.not_finite(self.name, arrays))
        return outputs

    def _step_text(
        self, program: WholeProgram, arrays: list[Any], parts: list[bool], whole: bool
    ) -> str:
        """Return a description of the step that must be equal on all processes."""
        version = public_package().__version__
        description = (
            f"called {self.name} of gradtape {version}, {program.digest}, on {self._on(arrays)}"
        )
        same = [x for x, part in zip(arrays, parts, strict=True) if whole or not part]
        if same:
            codes = ", ".join(f"{checksum(x):08x}" for x in same)
            description += f", of which the same everywhere are those with checksums {codes}"
        return description

    def _on(self, arrays: Sequence[Any]) -> str:
        return ", ".join(describe(x.shape, x.dtype) for x in arrays) or "no arrays"

    def _agree(self, description: str) -> None:
        code = crc32(description.encode())
        most, least = self._group.over_devices(np.array([code, -code])).tolist()
        if most != -least:
            self._disagree(description)

    def _disagree(self, description: str) -> None:
        raise DistributedError(f"ranks disagree: {told_by_ranks(self._group, description)}")

    def _own_rows(self, x: Any, total: int) -> Any:
        """Return this process's rows of an output that has one for each example."""
        group = self._group
        if x.is_fully_replicated:
            found = x.addressable_data(0)
            if group.size == 1 or not x.shape or x.shape[0] != total or total % group.size:
                return found
            rows = total // group.size
            return found[group.rank * rows : (group.rank + 1) * rows]
        shards = sorted(x.addressable_shards, key=lambda shard: shard.index[0].start)
        return group.on_first([shard.data for shard in shards])


_ARRAYS = (Tensor, np.ndarray, np.generic)


def _host(x: Any) -> Any:
    return np.ascontiguousarray(to_numpy(x))


class _Losses:
    """Records, while a step is traced, whether the losses that it follows are finite.

    Its gradients are already those of the whole batch.
    """

    def __init__(self) -> None:
        self._graph = active_graph.get()
        self.finite: Tensor | None = None

    def weighed(
        self, targets: list[Tensor], seeds: list[Tensor | None], sources: list[Any]
    ) -> list[Tensor | None]:
        """Return the upstream gradients unchanged."""
        return seeds

    def reduced(
        self, targets: list[Tensor], sources: list[Any], grads: list[Tensor | None]
    ) -> list[Tensor | None]:
        """Return the gradients unchanged, and record the targets."""
        if any(isinstance(x, Variable) for x in sources) and active_graph.get() is self._graph:
            for target in targets:
                self._note(target)
        return grads

    def refuse(self, method: str, sources: list[Any]) -> None:
        """Allow Jacobians."""

    def _note(self, target: Tensor) -> None:
        if target.dtype.kind in "fc":
            found = F.all(F.isfinite(target))
            self.finite = found if self.finite is None else F.logical_and(self.finite, found)


def _watched(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return the step with a second result: whether its losses are finite, or None without any."""

    @functools.wraps(step)
    def watched(*args: Any, **kwargs: Any) -> Any:
        losses = _Losses()
        token = reducing.set(losses)
        try:
            with as_one_program():
                return step(*args, **kwargs), losses.finite
        finally:
            reducing.reset(token)

    return watched
