"""``GradientTape``: records ops as they run, then walks back through them.

A record names tensors by id and holds, for each watched input, the rule that differentiates it and
what that rule asked for; nothing else stays alive. The backward pass works on raw arrays. If
another tape (or anything else) looks on, the same rules run on tensors instead, and are recorded
by it.
"""

from __future__ import annotations

import enum
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, overload

from ..base.context import active_batches, active_tapes
from ..base.dtypes import is_differentiable
from ..base.table import F
from ..base.tree import flatten, pack_like
from ..batches.batched import whole_shape
from ..ops.backend import shape_witness
from ..ops.op import Op, unsure
from ..tensors.convert import as_tensor
from ..tensors.tensor import Operators, Tensor
from ..tensors.variable import Variable
from .backward import Joint, arrays_of, reachable, run_backward

__all__ = ["GradientTape", "UnconnectedGradients"]

Key = TypeVar("Key")
Source = TypeVar("Source", bound=Operators)
#: A gradient, or None where there is none. ``Tensor | None`` would ask for a check of each gradient
#: in programs that are right; so a type checker lets None pass, and knows a tensor otherwise.
Gradient: TypeAlias = Tensor | Any
Zero: TypeAlias = 'Literal[UnconnectedGradients.ZERO, "zero"]'


class UnconnectedGradients(enum.Enum):
    """What :meth:`GradientTape.gradient` returns for a source without influence on the target."""

    NONE = "none"
    ZERO = "zero"


#: Stands for the outputs of what no tape sees; no tensor has this id.
ELSEWHERE = 0


class Break(NamedTuple):
    """Where a gradient path ended: an op that does not pass gradients on."""

    output: int
    input: int
    why: Op | str  # an op that has no rule for the input, or a reason in words

    @property
    def reason(self) -> str:
        """Why, in words."""
        op = self.why
        if isinstance(op, str):
            return op
        if op.rules is None and op.vjp is None:
            return f"op {op.name!r} has no gradient rule"
        return f"op {op.name!r} does not pass gradients to this input"


class GradientTape:
    """Record operations for automatic differentiation.

    Trainable variables that are read inside the ``with`` block are watched; tensors are watched on
    request. The semantics are those of TensorFlow's ``tf.GradientTape``.

    Parameters
    ----------
    persistent
        Keep the records after :meth:`gradient`, so that it may be called again.
    watch_accessed_variables
        Watch trainable variables when they are read.

    Examples
    --------
    >>> x = gt.constant(3.0)
    >>> with gt.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).item()
    6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = bool(persistent)
        self._watch_accessed = bool(watch_accessed_variables)
        # The id of each tensor that is followed -> how it was made:
        #   None: it was watched; or it is a further output of the Joint before it
        #   (input id, rule, the one value that it needs or None, tensor to unbroadcast to)
        #   [(input id, rule, values, keywords, tensor to unbroadcast to), ...]
        #   Joint
        # Ops add to it themselves where that is worth it.
        self._all: dict[int, Any] = {}
        # what ops see of it: nothing unless the tape is recording (a task that was started inside
        # the with block may outlive it, and still has the tape among its active ones)
        self.records: dict[int, Any] = {}
        self._roots: set[int] = set()
        self._variables: dict[int, Variable] = {}
        self._breaks: list[Break] = []
        self._stops: list[str] = []
        self._entered = self._recording = self._used = self._was_reset = False
        self._thread: int | None = None
        # the levels of the batches in which the tape was opened, and whether it has seen others
        self.levels: frozenset[int] = frozenset()
        self.batched = False

    def __repr__(self) -> str:
        state = "recording" if self._recording else "not recording"
        kind = "persistent, " if self._persistent else ""
        count = sum(record is not None for record in self._all.values())
        return f"<GradientTape: {kind}{state}, {count} records, {len(self._roots)} watched>"

    # -- recording -------------------------------------------------------------------------------

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise RuntimeError("GradientTape is already recording; open another tape to nest")
        if self._used and not self._persistent:
            self.reset()  # a tape that has answered starts afresh
            self._was_reset = False
        self._entered = True
        self._thread = threading.get_ident()
        self.levels = frozenset(batch.level for batch in active_batches.get())
        self._resume()
        return self

    def __exit__(self, *exception: object) -> None:
        self._pause()

    def _resume(self) -> None:
        self._recording, self.records = True, self._all
        active = active_tapes.get()
        if not any(map(self._is_in, active)):
            active_tapes.set((*active, self))

    def _pause(self) -> None:
        # by identity, not by position: tapes may be closed in any order
        self._recording, self.records = False, {}
        active_tapes.set(tuple(tape for tape in active_tapes.get() if tape is not self))

    def _is_in(self, recorder: Any) -> bool:
        """Return whether an active recorder is this tape, or stands for it inside a batch."""
        return recorder is self or getattr(recorder, "root", None) is self

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Pause this tape (and its watching of variables) for a block; other tapes go on.

        Raises
        ------
        RuntimeError
            If the tape is not recording.
        """
        if not self._recording:
            raise RuntimeError("stop_recording: this tape is not recording")
        frame = sys._getframe(2)
        self._stops.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        self._pause()
        try:
            yield
        finally:
            self._resume()

    def reset(self) -> None:
        """Forget everything recorded and watched, as if the tape had just been entered."""
        if not self._entered:
            raise RuntimeError("reset: this tape has not been entered; use it in a with statement")
        self._all, self._roots = {}, set()
        self.records = self._all if self._recording else {}
        self._variables, self._breaks, self._stops = {}, [], []
        self._was_reset, self._used = True, False

    def watch(self, tensor: Any) -> None:
        """Follow a tensor or variable (or those of a nested container).

        Only floating and complex values are differentiable; others are accepted, and their gradient
        is ``None``.

        Raises
        ------
        TypeError
            If something is neither a tensor nor a variable.
        """
        for leaf in flatten(tensor):
            if isinstance(leaf, (Tensor, Variable)):
                self._watch_id(leaf.id, leaf.dtype)
            else:
                raise TypeError(
                    f"watch: expected a Tensor or Variable, got {type(leaf).__name__}; "
                    "make one with gradtape.constant"
                )

    def _watch_id(self, id: int, dtype: Any) -> None:
        if is_differentiable(dtype):
            self._all.setdefault(id)
            self._roots.add(id)

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables watched by being read, in the order of their creation.

        As in TensorFlow, :meth:`watch` does not add to them.
        """
        return tuple(self._variables[id] for id in sorted(self._variables))

    def accessed(self, variable: Variable) -> None:
        """Take note that a trainable variable was read (called by the variable)."""
        if self._watch_accessed and self._recording and variable.id not in self._variables:
            self._variables[variable.id] = variable
            self._watch_id(variable.id, variable.dtype)

    def record(
        self, op: Op, inputs: tuple[Any, ...], output: Tensor, params: dict[str, Any]
    ) -> None:
        """Record a run of ``op`` with one output (called by the op)."""
        rules = op.rules
        if rules is None:
            self.record_joint(op, inputs, [output], params)
            return
        live = self.records
        edges: list[tuple[Any, ...]] = []
        array = output.array
        for x, rule in zip(inputs, rules):
            if type(x) is not Tensor or x.id not in live:
                continue
            if rule is None:
                self._breaks.append(Break(output.id, x.id, op))
                continue
            fn, like = rule.fn, None
            if array.dtype.kind == "c":
                fn = rule.fn_complex
            if rule.broadcasts:
                shape = x.array.shape
                # equal and fully known: nothing to sum back to, and nothing to keep
                if shape != array.shape or x.array.dtype is not array.dtype or unsure(shape):
                    like = shape_witness(x)
            only = rule.only
            if only is None:
                keywords = {name: params.get(name, op.defaults[name]) for name in rule.keywords}
                edges.append((x.id, fn, rule.pick((*inputs, output)), keywords, like))
            else:
                saved = None if only < 0 else (*inputs, output)[only]
                edges.append((x.id, fn, saved, None, like))
        if not edges:
            return
        if array.dtype.kind not in "fc":
            why = f"op {op.name!r} gives {output.dtype}, which has no gradient"
            self._breaks.extend(Break(output.id, edge[0], why) for edge in edges)
            return
        if len(edges) == 1 and edges[0][3] is None:
            id, fn, saved, _, like = edges[0]
            live[output.id] = (id, fn, saved, like)
        else:
            live[output.id] = edges

    def record_joint(
        self, op: Op, inputs: tuple[Any, ...], outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        """Record a run of an op with one rule for all of its inputs."""
        live = self.records
        ids = tuple(x.id if type(x) is Tensor and x.id in live else None for x in inputs)
        if not any(ids):
            return
        if op.vjp is None:
            for id in ids:
                if id is not None:
                    for output in outputs:
                        self._breaks.append(Break(output.id, id, op))
            return
        needed = tuple(id is not None for id in ids)
        settings = {**op.defaults, **params}
        vjp = op.vjp
        inputs, held = op.for_vjp(inputs, tuple(outputs))

        def backward(gs: list[Any], raw: bool) -> Sequence[Any]:
            xs, ys = (arrays_of(inputs), arrays_of(held)) if raw else (inputs, held)
            full = [F.zeros_like(y) if g is None else g for g, y in zip(gs, ys, strict=True)]
            result: Sequence[Any] = vjp(full, xs, ys, needed, **settings)
            return result

        self._join(outputs, Joint(tuple(y.id for y in outputs), ids, backward, op.name))

    def _join(self, outputs: list[Tensor], record: Joint) -> None:
        followed = [y.id for y in outputs if is_differentiable(y.dtype)]
        for id in followed:
            # the record comes first, so that going backwards all of its outputs are before it
            self.records[id] = record if id == followed[0] else None

    def record_call(
        self,
        name: str,
        inputs: list[Tensor],
        outputs: list[Tensor],
        backward: Callable[[list[Any], bool], Sequence[Any]],
    ) -> None:
        """Record a computation whose gradient is the function ``backward``."""
        ids = tuple(x.id if x.id in self.records else None for x in inputs)
        if any(ids):
            self._join(outputs, Joint(tuple(y.id for y in outputs), ids, backward, name))

    def record_break(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], why: str) -> None:
        """Take note that gradients stop here, and why."""
        for x in inputs:
            if x.id in self.records:
                self._breaks.extend(Break(y.id, x.id, why) for y in outputs)
                if not outputs:
                    self._breaks.append(Break(ELSEWHERE, x.id, why))

    # -- differentiation -------------------------------------------------------------------------

    @overload
    def gradient(
        self,
        target: Any,
        sources: Operators,
        output_gradients: Any = None,
        *,
        unconnected_gradients: Zero,
    ) -> Tensor: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: list[Source],
        output_gradients: Any = None,
        *,
        unconnected_gradients: Zero,
    ) -> list[Tensor]: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: tuple[Source, ...],
        output_gradients: Any = None,
        *,
        unconnected_gradients: Zero,
    ) -> tuple[Tensor, ...]: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: dict[Key, Source],
        output_gradients: Any = None,
        *,
        unconnected_gradients: Zero,
    ) -> dict[Key, Tensor]: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: Operators,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> Gradient: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: list[Source],
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> list[Gradient]: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: tuple[Source, ...],
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> tuple[Gradient, ...]: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: dict[Key, Source],
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> dict[Key, Gradient]: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> Any: ...

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the gradient of ``target`` with respect to ``sources``.

        Parameters
        ----------
        target
            A tensor, or a nested container of tensors (their gradients are summed).
        sources
            Tensors or variables, in any nested container of lists, tuples and dicts.
        output_gradients
            The upstream gradient of each target, in the same structure; ones by default.
        unconnected_gradients
            ``UnconnectedGradients.NONE`` (or ``"none"``): ``None`` for a source that does not
            influence the target. ``ZERO`` (or ``"zero"``): zeros.

        Returns
        -------
        A gradient per source, of its shape and dtype, in the structure of ``sources``.

        Raises
        ------
        RuntimeError
            If a non-persistent tape is asked a second time.
        TypeError
            If the target is ``None`` or not a tensor.
        ValueError
            If an output gradient is ``None``, or its shape is not the target's.
        """
        self._check_unused()
        unconnected = unconnected_kind(unconnected_gradients)
        if target is None:
            raise TypeError("gradient: target must be a Tensor or Variable, got None")
        targets = [_handle(leaf, "target") for leaf in flatten(target)]
        leaves = flatten(sources)
        handles = [_handle(leaf, "sources") for leaf in leaves]
        seeds = _seeds(targets, output_gradients)
        if not leaves:
            return pack_like(sources, [])
        self._used = True
        if not targets:
            return pack_like(sources, [None] * len(leaves))
        grads = self._backward(targets, seeds, [handle.id for handle in handles])
        results: list[Any] = []
        for handle, g in zip(handles, grads, strict=True):
            if g is None and unconnected is UnconnectedGradients.ZERO:
                g = Tensor(F.zeros_like(handle.array))
            results.append(g)
        return pack_like(sources, results)

    @overload
    def jacobian(
        self,
        target: Any,
        sources: Operators,
        unconnected_gradients: UnconnectedGradients | str = ...,
        parallel_iterations: int | None = ...,
        experimental_use_pfor: bool = ...,
    ) -> Gradient: ...
    @overload
    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = ...,
        parallel_iterations: int | None = ...,
        experimental_use_pfor: bool = ...,
    ) -> Any: ...

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the derivative of every element of ``target`` by every element of ``sources``.

        Parameters
        ----------
        target
            A tensor of any shape.
        sources
            Tensors or variables, in any nested containers.
        unconnected_gradients
            As for :meth:`gradient`.
        parallel_iterations
            How many rows (elements of the target) go back at once: the memory needed is
            proportional to it. By default as many as take 1 GiB, by an estimate from the largest
            tensor on the tape.
        experimental_use_pfor
            If false, the rows go back one by one, without batching rules.

        Returns
        -------
        Per source, a tensor of shape ``target.shape + source.shape``, in the source's dtype.

        Raises
        ------
        RuntimeError
            If a non-persistent tape is asked a second time.
        TypeError
            If the target is no tensor; in a trace, if its shape is not fully known.
        ValueError
            If ``parallel_iterations`` is below 1.
        """
        from .jacobian import jacobian  # it builds on tapes

        self._check_unused()
        _check_rows(parallel_iterations, "jacobian")
        unconnected = unconnected_kind(unconnected_gradients)
        y = _handle(target, "target", "jacobian")
        handles = [_handle(leaf, "sources", "jacobian") for leaf in flatten(sources)]
        self._used = True
        found = jacobian(self, y, handles, parallel_iterations, bool(experimental_use_pfor))
        if unconnected is UnconnectedGradients.ZERO:
            for i, (x, j) in enumerate(zip(handles, found, strict=True)):
                if j is None:
                    rows = F.zeros_like(y.array)
                    for _ in x.shape or ():
                        rows = F.expand_dims(rows, axis=-1)
                    found[i] = Tensor(F.cast_like(rows, x.array) + F.zeros_like(x.array))
        return pack_like(sources, found)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        check: bool = False,
    ) -> Tensor:
        """Return the Jacobian of every example: of ``target[i]`` by ``source[i]``.

        It is right where no example's target depends on another example's source.

        Parameters
        ----------
        target
            A tensor of shape ``(batch, ...)``.
        source
            A tensor or variable of shape ``(batch, ...)``.
        unconnected_gradients
            Zeros stand for "unconnected" either way, as in TensorFlow.
        parallel_iterations, experimental_use_pfor
            As for :meth:`jacobian`.
        check
            Make sure that the examples are independent, at the cost of one more backward pass.

        Returns
        -------
        A tensor of shape ``(batch, *target.shape[1:], *source.shape[1:])``.

        Raises
        ------
        RuntimeError
            If a non-persistent tape is asked a second time.
        ValueError
            If the numbers of examples differ; with ``check``, if examples are not independent.
        """
        from .jacobian import batch_jacobian, check_examples

        self._check_unused()
        _check_rows(parallel_iterations, "batch_jacobian")
        unconnected_kind(unconnected_gradients)
        y = _handle(target, "target", "batch_jacobian")
        x = _handle(source, "source", "batch_jacobian")
        check_examples(self, y, x, check)
        self._used = True
        return batch_jacobian(self, y, x, parallel_iterations if experimental_use_pfor else 1)

    def _check_unused(self) -> None:
        if self._used and not self._persistent:
            raise RuntimeError(
                "a non-persistent GradientTape can only be used to compute one set of gradients; "
                "make it with GradientTape(persistent=True) to call it again"
            )

    def _saved_shapes(self) -> set[Any]:
        """Return the shapes, hidden axes included, of the followed tensors that records keep.

        Gradients on their way back have these shapes; an untracked operand has no gradient.
        """
        shapes, live = set(), self._all
        for record in live.values():
            if type(record) is tuple:
                saved = record[2]
                if type(saved) is Tensor and (not saved.id or saved.id in live):
                    shapes.add(whole_shape(saved.array))
            elif type(record) is list:
                for edge in record:
                    for saved in edge[2] if type(edge[2]) is tuple else (edge[2],):
                        if type(saved) is Tensor and (not saved.id or saved.id in live):
                            shapes.add(whole_shape(saved.array))
        return shapes

    def _backward(
        self,
        targets: list[Tensor],
        seeds: list[Tensor | None],
        sources: list[int],
        keep: bool = False,
    ) -> list[Tensor | None]:
        """Run the backward pass and return a tensor or None per source id."""
        keep = keep or self._persistent
        others = tuple(tape for tape in active_tapes.get() if not self._is_in(tape))
        if self.batched and others:
            from .outside import Outside  # it builds on tapes

            # what runs now may still differ from example to example of a batch that has ended
            others = tuple(map(Outside.of, others))
        raw = not others
        grads: dict[int, Any] = {}
        wanted = set(sources)
        token = active_tapes.set(others)
        try:
            for target, seed in zip(targets, seeds, strict=True):
                if is_differentiable(target.dtype):
                    g: Any = F.ones_like(target.array) if seed is None else seed.array
                    if not raw:
                        g = Tensor(g) if seed is None else seed
                    known = grads.get(target.id)
                    grads[target.id] = g if known is None else known + g
            useful = None if self._roots <= wanted else reachable(self._all, wanted)
            # a persistent tape keeps its records; another gives up each as it is used
            records = self._all.copy() if keep else self._all
            run_backward(records, grads, wanted, raw, useful)
        finally:
            active_tapes.reset(token)
            if not keep:
                self._all.clear()
        found = [grads.get(id) for id in sources]
        return [None if g is None else Tensor(g) if type(g) is not Tensor else g for g in found]

    def explain(self, target: Any, source: Any) -> str:
        """Say why the gradient of ``target`` by ``source`` exists, or is ``None`` or zero.

        A non-persistent tape answers before :meth:`gradient` is called, or, once its records are
        gone, from what it still knows.
        """
        from .explain import explain

        return explain(self, _handle(target, "target"), _handle(source, "source"), source)


def _check_rows(parallel_iterations: int | None, name: str) -> None:
    if parallel_iterations is None:
        return
    if isinstance(parallel_iterations, bool) or not isinstance(parallel_iterations, int):
        raise TypeError(
            f"{name}: parallel_iterations must be an integer or None, got {parallel_iterations!r}"
        )
    if parallel_iterations < 1:
        raise ValueError(
            f"{name}: parallel_iterations must be at least 1, got {parallel_iterations}"
        )


def _handle(leaf: Any, argument: str, method: str = "gradient") -> Tensor:
    """Return the tensor that stands for a target or source; a variable is not watched by this."""
    if type(leaf) is Tensor:
        return leaf
    if isinstance(leaf, Variable):
        return leaf.handle()
    if method == "batch_jacobian":
        raise TypeError(
            f"batch_jacobian: {argument} must be one Tensor or Variable, got {type(leaf).__name__}"
        )
    raise TypeError(f"{method}: {argument} must be Tensors or Variables, got {leaf!r}")


def _seeds(targets: list[Tensor], output_gradients: Any) -> list[Tensor | None]:
    if output_gradients is None:
        return [None] * len(targets)
    leaves = flatten(output_gradients)
    if len(leaves) != len(targets):
        raise ValueError(f"gradient: {len(targets)} targets but {len(leaves)} output_gradients")
    seeds: list[Tensor | None] = []
    for target, leaf in zip(targets, leaves, strict=True):
        if leaf is None:
            raise ValueError("gradient: output_gradients contains None; pass zeros instead")
        seed = as_tensor(leaf)
        if seed.dtype != target.dtype and is_differentiable(target.dtype):
            if seed.dtype.kind == "c" and target.dtype.kind != "c":
                raise TypeError(
                    f"gradient: output_gradients has dtype {seed.dtype}, its target is real "
                    f"({target.dtype}); pass the real part"
                )
            seed = seed.astype(target.dtype)
        shape, want = seed.shape, target.shape
        if shape != want and not unsure(shape) and not unsure(want):
            raise ValueError(
                f"gradient: output_gradients has shape {shape}, its target has shape {want}"
            )
        seeds.append(seed)
    return seeds


def unconnected_kind(value: UnconnectedGradients | str) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(f"unconnected_gradients must be 'none' or 'zero', got {value!r}") from None
