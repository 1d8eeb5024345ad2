"""``GradientTape``: records ops as they run, then runs the backward pass over the records.

A record names tensors by id. For each watched input it holds the gradient rule and the values that
the rule reads; nothing else stays alive. The backward pass computes on raw arrays. If another tape
(or any other recorder) is active, the same rules run on tensors instead, and that tape records
them.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar, overload

from ...hints import hinted
from ..base.context import active_graph, active_tapes, after_batches, reducing, strictness
from ..base.dtypes import DTYPES, is_differentiable
from ..base.table import F
from ..base.tree import flatten, pack_like
from ..base.user_code import is_users_call
from ..batches.batched import whole_shape
from ..ops.dispatch import scope_of
from ..tensors.tensor import Operators, Tensor
from ..tensors.variable import Variable
from .backward import (
    UnconnectedGradients,
    check_rows,
    handle_of,
    refuse_parts,
    run_backward,
    seeds_of,
    unconnected_kind,
)
from .jacobian import batch_jacobian, check_examples, jacobian
from .missing_gradients import check_paths, explain, warn_of_none
from .outer_tape import OuterTape
from .recording import RecordingTape
from .records import reachable, saved_tensors

Key = TypeVar("Key")
Source = TypeVar("Source", bound=Operators)
#: A gradient, or None if there is none. With ``Tensor | None``, type checkers would demand a check
#: of every gradient in correct programs. With this alias they let None pass, and still know the
#: type of a tensor.
Gradient: TypeAlias = Tensor | Any
Zero: TypeAlias = 'Literal[UnconnectedGradients.ZERO, "zero"]'


class GradientTape(RecordingTape):
    """Record operations for automatic differentiation.

    Trainable variables that are read inside the ``with`` block are watched automatically. To watch
    a tensor, call :meth:`watch`. The semantics are those of TensorFlow's ``tf.GradientTape``.

    Parameters
    ----------
    persistent
        Keep the records after :meth:`gradient`, so that you can call it again. Inside its ``with``
        block a persistent tape also records the gradients, so that you can differentiate them.
        False by default.
    watch_accessed_variables
        Watch trainable variables when they are read. True by default.
    strict
        Raise :class:`GradientError` if a gradient is incomplete or ``None`` because a path from a
        source to the target is broken. An op without gradient rules breaks a path, as do rounding,
        integers that become floats again, an assignment to a watched variable, and a value that was
        read (``float(x)``, ``np.array(x)``) if the target depends on what was computed from it. If
        no other path leads to the target, an assignment to another variable and ``x.numpy()`` also
        break it. :func:`gradtape.stop_gradient`, conditions, and integers that select elements
        do not. A strict tape costs a little more per op. False by default.

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
            ``UnconnectedGradients.NONE`` (or ``"none"``, the default) returns ``None`` for a source
            that does not influence the target. ``ZERO`` (or ``"zero"``) returns zeros.

        Returns
        -------
        object
            A gradient per source, of its shape and dtype, in the structure of ``sources``.

        Raises
        ------
        RuntimeError
            If the tape was never entered, or if it is not persistent and was already used.
        GradientError
            If the tape is strict, and a path is broken. If it is not strict, a value that was read
            and came back causes a ``BrokenPathWarning``, once per line.
        TypeError
            If the target is ``None`` or not a tensor.
        ValueError
            If an output gradient is ``None``, or its shape is not the target's.

        Notes
        -----
        The gradient of a complex target is TensorFlow's: the conjugate of the derivative.

        Inside its own block, a persistent tape records the gradient for higher-order derivatives.
        If you do not need these, :meth:`stop_recording` saves the cost.

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
        targets = [handle_of(leaf, "target", tape=self) for leaf in flatten(target)]
        leaves = flatten(sources)
        # a variable has the id of its handle, and nearly always only the id is needed
        known = [x if type(x) is Variable else handle_of(x, "sources") for x in leaves]
        seeds = seeds_of(targets, output_gradients)
        if not leaves:
            return pack_like(sources, [])
        if self._strict or self.checks_constants or self._lacks_calls:
            check_paths(self, targets, [handle_of(x, "sources") for x in known])
        live = self._all
        unseen = targets and (live.get(targets[0].id) is None or known[0].id not in live)
        if unseen and is_users_call():
            warn_of_none(self, "gradient", targets, leaves, unconnected)
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
        """Return the Jacobian of ``target`` with respect to each of ``sources``.

        Parameters
        ----------
        target
            A tensor of any shape.
        sources
            Tensors or variables, in any nested containers.
        unconnected_gradients
            As for :meth:`gradient`.
        parallel_iterations
            The number of rows (elements of the target) that one backward pass computes; memory use
            is proportional to it. By default, as many as fit in 1 GiB, estimated from the largest
            tensor on the tape.
        experimental_use_pfor
            If false, one backward pass runs per row, without batching rules. Outside traces this
            needs a persistent tape. True by default.

        Returns
        -------
        object
            For each source, a tensor of shape ``target.shape + source.shape`` in the source's
            dtype, or ``None`` if unconnected; in the structure of ``sources``.

        Raises
        ------
        RuntimeError
            If the tape was never entered. If it is not persistent, and was already used or would
            need one backward pass per row.
        GradientError
            If the tape is strict, and a path is broken.
        TypeError
            If the target is neither a tensor nor a variable. In a trace, if the rank of the target
            or of a source is unknown.
        ValueError
            If ``parallel_iterations`` is below 1.

        Notes
        -----
        The rows are gradients, in TensorFlow's convention: those of the real parts of a complex
        target. They are its whole derivative if it is a holomorphic function of the source;
        otherwise this method warns, except in traces and in ``vmap``.

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
        y = handle_of(target, "target", "jacobian", self)
        leaves = flatten(sources)
        handles = [handle_of(leaf, "sources", "jacobian") for leaf in leaves]
        refuse_parts("jacobian", leaves)
        check_paths(self, [y], handles)
        if leaves and is_users_call():
            warn_of_none(self, "jacobian", [y], leaves, unconnected)
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
        """Return each example's Jacobian: of ``target[i]`` with respect to ``source[i]``.

        The result is correct only if no example's target depends on another example's source.

        Parameters
        ----------
        target
            A tensor of shape ``(batch, ...)``.
        source
            A tensor or variable of shape ``(batch, ...)``.
        unconnected_gradients
            If unconnected, the result is zeros for either value, as in TensorFlow.
        parallel_iterations, experimental_use_pfor
            As for :meth:`jacobian`.
        check
            Check that the examples are independent, at the cost of one more backward pass. False by
            default.

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
            If target or source has fewer than two axes, or the numbers of examples differ. With
            ``check``, if the examples are not independent.

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
        y = handle_of(target, "target", "batch_jacobian", self)
        x = handle_of(source, "source", "batch_jacobian")
        refuse_parts("batch_jacobian", [source])
        check_examples(self, y, x, check)
        check_paths(self, [y], [x])
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
        if not at_once and active_graph.get() is None:  # as in TensorFlow: traces may
            raise RuntimeError(
                f"{method}: experimental_use_pfor=False runs one backward pass per row, which "
                "needs a persistent tape; make it with GradientTape(persistent=True)"
            )

    def _saved_shapes(self) -> set[Any]:
        """Return the shapes, hidden axes included, of the followed tensors that records keep.

        Gradients in the backward pass have these shapes; an operand that is not followed has none.
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
        # a persistent tape records its own gradients, for higher orders
        if others and not self._persistent:
            others = tuple(tape for tape in others if not self._is_in(tape))
        if self.batched and others:
            # values may still differ between the examples of a batch that has ended
            others = tuple(map(OuterTape.of, others))
        # rules expect NumPy's dtypes, which tensors return for the arrays of any library
        raw = not (others or [t for t in targets if type(t.array.dtype) not in DTYPES])
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
            whole = self._roots.keys() <= wanted and not self.checks_constants
            useful = None if whole else reachable(self._all, wanted)
            # a persistent tape keeps its records; any other frees each record after use
            records = self._all.copy() if keep else self._all
            with scope_of([target.array for target in targets]):
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
        """Explain why the gradient with respect to ``source`` exists, is ``None`` or is zero.

        If the tape is not persistent, call this before :meth:`gradient`, which frees the records.
        Afterwards the explanation can use only what the tape still knows.

        Parameters
        ----------
        target
            A tensor.
        source
            A tensor or variable.

        Returns
        -------
        str
            One or more sentences: whether differentiable ops connect the two, or where the path
            ends and why.

        Raises
        ------
        TypeError
            If one of them is neither a tensor nor a variable.
        """
        return explain(self, handle_of(target, "target"), handle_of(source, "source"), source)


hinted(GradientTape, "GradientTape")


def _strict_ones(recorders: tuple[Any, ...]) -> list[Any]:
    roots = [getattr(x, "root", x) for x in recorders]
    return [x for x in roots if getattr(x, "_strict", False)]
