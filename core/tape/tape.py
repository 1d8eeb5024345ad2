"""``GradientTape``: records ops as they run, then walks back through them.

A record names tensors by id and holds, for each watched input, the rule that differentiates it and
what that rule asked for; nothing else stays alive. The backward pass works on raw arrays. If
another tape (or anything else) looks on, the same rules run on tensors instead, and are recorded
by it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar, overload

from ..base.context import active_graph, active_tapes, after_batches, reducing, strictness
from ..base.dtypes import DTYPES, is_differentiable
from ..base.table import F
from ..base.tree import flatten, pack_like
from ..batches.batched import whole_shape
from ..ops.backend import scope_of
from ..tensors.tensor import Operators, Tensor
from ..tensors.variable import Variable
from .arguments import (
    UnconnectedGradients,
    check_rows,
    handle_of,
    refuse_parts,
    seeds_of,
    unconnected_kind,
)
from .backward import run_backward
from .broken import check_strict
from .explain import explain
from .jacobian import batch_jacobian, check_examples, jacobian
from .outer import OuterTape
from .recording import RecordingTape
from .records import reachable, saved_tensors

__all__ = ["GradientTape"]

Key = TypeVar("Key")
Source = TypeVar("Source", bound=Operators)
#: A gradient, or None where there is none. ``Tensor | None`` would ask for a check of each gradient
#: in programs that are right; so a type checker lets None pass, and knows a tensor otherwise.
Gradient: TypeAlias = Tensor | Any
Zero: TypeAlias = 'Literal[UnconnectedGradients.ZERO, "zero"]'


class GradientTape(RecordingTape):
    """Record operations for automatic differentiation.

    Trainable variables that are read inside the ``with`` block are watched; tensors are watched on
    request. The semantics are those of TensorFlow's ``tf.GradientTape``.

    Parameters
    ----------
    persistent
        Keep the records after :meth:`gradient`, so that it may be called again. Inside the ``with``
        block the tape then records the gradients too, and they may be differentiated in turn.
        False by default.
    watch_accessed_variables
        Watch trainable variables when they are read. True by default.
    strict
        Raise :class:`GradientError` where a gradient lacks a part, or is ``None``, because a path
        from a source to the target is broken by what has no gradient and yet gives floats that
        depend on the source: an op without gradient rules, rounding, integers that become floats
        again, an assignment to a variable that is followed; an assignment to another, and a value
        that was read (``x.numpy()``), if no other path leads to the target. Not broken are
        :func:`gradtape.stop_gradient`, which says that it is meant, conditions, and integers that
        select. Costs a little more per op. False by default.

    Examples
    --------
    >>> x = gt.constant(3.0)
    >>> with gt.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).item()
    6.0
    """

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
            ``UnconnectedGradients.NONE`` (or ``"none"``, the default): ``None`` for a source that
            does not influence the target. ``ZERO`` (or ``"zero"``): zeros.

        Returns
        -------
        object
            A gradient per source, of its shape and dtype, in the structure of ``sources``.

        Raises
        ------
        RuntimeError
            If the tape was never entered, or a non-persistent one is asked a second time.
        GradientError
            If the tape is strict, and a path is broken.
        TypeError
            If the target is ``None`` or not a tensor.
        ValueError
            If an output gradient is ``None``, or its shape is not the target's.

        Notes
        -----
        The gradient of a complex target is TensorFlow's: the conjugate of the derivative.

        A persistent tape that is asked inside its own block records the gradient, for derivatives
        of higher orders; :meth:`stop_recording` saves that where they are not needed.

        Examples
        --------
        >>> x, w = gt.constant(3.0), gt.Variable(2.0)
        >>> with gt.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = w * x * x
        >>> grads = tape.gradient(y, {"x": x, "w": w})
        >>> grads["x"].item(), grads["w"].item()
        (12.0, 9.0)
        """
        self._check_usable("gradient")
        unconnected = unconnected_kind(unconnected_gradients)
        if target is None:
            raise TypeError("gradient: target must be a Tensor or Variable, got None")
        targets = [handle_of(leaf, "target") for leaf in flatten(target)]
        leaves = flatten(sources)
        # a variable has its handle's identity, which is nearly always all that is asked for
        known = [x if type(x) is Variable else handle_of(x, "sources") for x in leaves]
        seeds = seeds_of(targets, output_gradients)
        if not leaves:
            return pack_like(sources, [])
        if self._strict:
            check_strict(self, targets, [handle_of(x, "sources") for x in known])
        self._used = True
        if not targets:
            return pack_like(sources, [None] * len(leaves))
        reducer = reducing.get()
        if reducer is not None:
            seeds = reducer.weighed(targets, seeds, leaves)
        grads = self._backward(targets, seeds, [x.id for x in known])
        if reducer is not None:
            grads = reducer.reduced(targets, leaves, grads)
        if unconnected is UnconnectedGradients.ZERO:
            grads = [
                Tensor(F.zeros_like(handle_of(x, "sources").array)) if g is None else g
                for x, g in zip(known, grads, strict=True)
            ]
        return pack_like(sources, grads)

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
            If false, the rows go back one by one, without batching rules; outside traces the tape
            must be persistent then.

        Returns
        -------
        object
            Per source, a tensor of shape ``target.shape + source.shape``, in the source's dtype, or
            ``None`` if unconnected; in the structure of ``sources``.

        Raises
        ------
        RuntimeError
            If the tape was never entered, or a non-persistent one is asked a second time, or for
            its rows one by one.
        GradientError
            If the tape is strict, and a path is broken.
        TypeError
            If the target is no tensor; in a trace, if its shape is not fully known.
        ValueError
            If ``parallel_iterations`` is below 1.

        Examples
        --------
        >>> x = gt.constant([1.0, 2.0])
        >>> with gt.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.jacobian(y, x).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
        """
        self._check_usable("jacobian", experimental_use_pfor)
        check_rows(parallel_iterations, "jacobian")
        unconnected = unconnected_kind(unconnected_gradients)
        y = handle_of(target, "target", "jacobian")
        leaves = flatten(sources)
        handles = [handle_of(leaf, "sources", "jacobian") for leaf in leaves]
        refuse_parts("jacobian", leaves)
        check_strict(self, [y], handles)
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
        Tensor
            A tensor of shape ``(batch, *target.shape[1:], *source.shape[1:])``, in the source's
            dtype.

        Raises
        ------
        RuntimeError
            As for :meth:`jacobian`.
        GradientError
            If the tape is strict, and a path is broken.
        ValueError
            If target or source has fewer than two axes, or the numbers of examples differ; with
            ``check``, if examples are not independent.

        Examples
        --------
        >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> with gt.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.batch_jacobian(y, x).tolist()
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
        self._check_usable("batch_jacobian", experimental_use_pfor)
        check_rows(parallel_iterations, "batch_jacobian")
        unconnected_kind(unconnected_gradients)
        y = handle_of(target, "target", "batch_jacobian")
        x = handle_of(source, "source", "batch_jacobian")
        refuse_parts("batch_jacobian", [source])
        check_examples(self, y, x, check)
        check_strict(self, [y], [x])
        self._used = True
        return batch_jacobian(self, y, x, parallel_iterations if experimental_use_pfor else 1)

    def _check_usable(self, method: str, at_once: bool = True) -> None:
        if not self._entered:
            raise RuntimeError(f"{method}: the tape was never entered; use it in a with statement")
        if self._persistent:
            return
        if self._used:
            raise RuntimeError(
                "a non-persistent GradientTape can only be used to compute one set of gradients; "
                "make it with GradientTape(persistent=True) to call it again"
            )
        if not at_once and active_graph.get() is None:  # as in TensorFlow, where a trace may
            raise RuntimeError(
                f"{method}: experimental_use_pfor=False asks the tape once for each row; make it "
                "with GradientTape(persistent=True)"
            )

    def _saved_shapes(self) -> set[Any]:
        """Return the shapes, hidden axes included, of the followed tensors that records keep.

        Gradients on their way back have these shapes; an untracked operand has no gradient.
        """
        live = self._all
        return {
            whole_shape(saved.array)
            for saved in saved_tensors(live)
            if not saved.id or saved.id in live
        }

    def _backward(
        self,
        targets: list[Tensor],
        seeds: list[Tensor | None],
        sources: list[int],
        keep: bool = False,
    ) -> list[Tensor | None]:
        """Run the backward pass and return a tensor or None per source id."""
        keep = keep or self._persistent
        others = active_tapes.get()
        if not self._persistent:  # a persistent one records what it computes, for higher orders
            others = tuple(tape for tape in others if not self._is_in(tape))
        if self.batched and others:
            # what runs now may still differ from example to example of a batch that has ended
            others = tuple(map(OuterTape.of, others))
        # rules read dtypes as NumPy's, which tensors give whatever the library
        raw = not others and all(type(t.array.dtype) in DTYPES for t in targets)
        ended = after_batches.set(True) if self.batched else None
        strict = _strict_ones(others) if others else []
        for tape in strict:  # a rule may round, as that of remainder does
            tape._strict = False
        asked = strictness.set(True) if self._strict else None
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
            useful = None if self._roots.keys() <= wanted else reachable(self._all, wanted)
            # a persistent tape keeps its records; another gives up each as it is used
            records = self._all.copy() if keep else self._all
            with scope_of(target.array for target in targets):
                run_backward(records, grads, wanted, raw, useful)
        finally:
            active_tapes.reset(token)
            for tape in strict:
                tape._strict = True
            if asked is not None:
                strictness.reset(asked)
            if ended is not None:
                after_batches.reset(ended)
            if not keep:
                self._all.clear()
        found = [grads.get(id) for id in sources]
        return [None if g is None else Tensor(g) if type(g) is not Tensor else g for g in found]

    def explain(self, target: Any, source: Any) -> str:
        """Say why the gradient of ``target`` by ``source`` exists, or is ``None`` or zero.

        A non-persistent tape answers before :meth:`gradient` is called, or, once its records are
        gone, from what it still knows.

        Parameters
        ----------
        target
            A tensor.
        source
            A tensor or variable.

        Returns
        -------
        str
            The reason in words: the path of ops that connects the two, or where it ends, and why.

        Raises
        ------
        TypeError
            If one of them is neither a tensor nor a variable.
        """
        return explain(self, handle_of(target, "target"), handle_of(source, "source"), source)


def _strict_ones(recorders: tuple[Any, ...]) -> list[Any]:
    roots = [getattr(x, "root", x) for x in recorders]
    return [x for x in roots if getattr(x, "_strict", False)]
