"""gradtape's functions and models in programs of PyTorch.

A call is one node of PyTorch's graph, an ``autograd.Function``. Its tape is kept, and records the
backward pass too if PyTorch wants to differentiate that: nothing is computed twice.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd import forward_ad

from ..core.extend import (
    F,
    GradientTape,
    Tensor,
    Variable,
    init_scope,
    is_differentiable,
    vmap,
)
from .torch_arrays import array_of, own_tensors, separate
from .trees import Parts

Compute = Callable[[list[Tensor]], list[Tensor]]


class Record:
    """What a call left on its tape, to be differentiated.

    Parameters
    ----------
    tape
        A persistent tape.
    results
        The results, as tensors of the tape.
    sources
        For each tensor that the call got, what the tape knows it as; None without derivatives.
    """

    __slots__ = ("results", "sources", "tape")

    def __init__(self, tape: GradientTape, results: list[Any], sources: Sequence[Any]) -> None:
        self.tape, self.results, self.sources = tape, results, sources

    def pulled(self, upstream: Sequence[Tensor | None], wanted: Sequence[bool]) -> list[Any]:
        """Return the gradients of the sources, None for those that are not wanted."""
        ends = [(y, g) for y, g in zip(self.results, upstream, strict=True) if g is not None]
        places = [i for i, x in enumerate(self.sources) if wanted[i] and x is not None]
        found: list[Any] = [None] * len(self.sources)
        if ends and places:
            sources = [self.sources[i] for i in places]
            grads = self.tape.gradient([y for y, _ in ends], sources, [g for _, g in ends])
            for i, g in zip(places, grads, strict=True):
                found[i] = g
        return found


@contextmanager
def captured_refused() -> Iterator[None]:
    """Name the reason where a function converts a tensor that it would not differentiate."""
    try:
        yield
    except RuntimeError as error:
        if "numpy() on Tensor that requires grad" not in str(error):
            raise
        raise TypeError(
            "to_torch: the function uses a torch.Tensor that requires gradients and is not among "
            "its arguments, nor in a list, tuple or dict of them: pass it as an argument, or "
            "x.detach()"
        ) from error


class Run:
    """A computation of gradtape on tensors of PyTorch: what ``autograd.Function`` runs.

    Parameters
    ----------
    compute
        A function of a list of gradtape's tensors that returns one.
    known
        The variables that are among the tensors, by their place.
    """

    record: Record | None = None
    smooth: Sequence[bool] = ()
    #: Which tensors require gradients; empty inside ``torch.func``, which does not say.
    asked: Sequence[bool] = ()

    def __init__(self, compute: Compute, known: Sequence[Variable] = ()) -> None:
        self.compute, self._known = compute, known

    def plain(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results, without derivatives."""
        with init_scope():
            given = [Tensor(array_of(x)) for x in tensors]
            with captured_refused():
                found = own_tensors(self.compute(given))
            separate(given)
        return tuple(found)

    def recorded(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results, and keep the record of how they were computed."""
        given = [Tensor(array_of(x)) for x in tensors]
        with init_scope(), GradientTape(persistent=True) as tape:
            sources = self.watched(tape, given)
            with torch.enable_grad(), captured_refused():
                results = self.compute(given)
        known = {v.id for v in self._known}
        others = [v.name for v in tape.watched_variables() if v.id not in known]
        if others:
            raise TypeError(
                f"to_torch: the function reads the trainable variables {others}, which PyTorch "
                "would not see: pass the gradtape.Module that holds them, or their values as "
                "arguments"
            )
        return self.kept(tape, results, sources)

    def watched(self, tape: GradientTape, given: Sequence[Tensor]) -> list[Any]:
        """Watch the tensors of a call; return what the tape knows them as."""
        sources: list[Any] = []
        for i, v in enumerate(self._known):
            wanted = is_differentiable(v.dtype) and (not self.asked or self.asked[i])
            sources.append(v if wanted else None)
            if wanted and not v.trainable:  # PyTorch decides, also for buffers
                tape.watch(v)
        for x in given[len(sources) :]:
            smooth = is_differentiable(x.dtype)
            sources.append(x if smooth else None)
            if smooth:
                tape.watch(x)
        return sources

    def kept(
        self, tape: GradientTape, results: list[Tensor], sources: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Return results as tensors of PyTorch, and keep the record, which does not hold them."""
        found = own_tensors(results)
        ids = [y.id for y in results]
        results.clear()
        ends = [Tensor.with_id(array_of(y), id) for y, id in zip(found, ids, strict=True)]
        self.record = Record(tape, ends, sources)
        return tuple(found)

    def batched(self, axes: Sequence[int | None]) -> Run:
        """Return a run for batches, whose results have them along the first axis."""
        if any(axis is not None for axis in axes[: len(self._known)]):
            raise NotImplementedError(
                "to_torch: torch.vmap over the parameters of a gradtape model is not supported: "
                "call the model once for each set of parameters"
            )
        many = vmap(lambda *xs: self.compute(list(xs)), in_axes=tuple(axes))
        return Run(lambda xs: list(many(*xs)), self._known)


class Pull(Run):
    """The backward pass of a run, as a run of the same tensors followed by upstream gradients.

    Parameters
    ----------
    run
        The run.
    used
        Which results have an upstream gradient.
    wanted
        Which tensors need a gradient.
    """

    def __init__(self, run: Run, used: Sequence[bool], wanted: Sequence[bool]) -> None:
        self._run, self._used, self._wanted = run, used, wanted
        self._known = run._known
        self.found: list[bool] = []

    def _gradients(self, record: Record, upstream: Sequence[Tensor]) -> list[Any]:
        rest = iter(upstream)
        grads = record.pulled([next(rest) if use else None for use in self._used], self._wanted)
        self.found = [g is not None for g in grads]
        return [g for g in grads if g is not None]

    def _upstream(self, tensors: Sequence[Any]) -> list[Tensor]:
        return [Tensor(array_of(g)) for g in tensors[len(tensors) - sum(self._used) :]]

    def plain(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients that exist; ``found`` says which do."""
        assert self._run.record is not None
        with init_scope():
            return tuple(own_tensors(self._gradients(self._run.record, self._upstream(tensors))))

    def recorded(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients that exist, and record how they were computed on the same tape."""
        kept = self._run.record
        assert kept is not None
        upstream = self._upstream(tensors)
        with init_scope(), kept.tape:
            for g in upstream:
                kept.tape.watch(g)
            grads = self._gradients(kept, upstream)
        return self.kept(kept.tape, grads, [*kept.sources, *upstream])

    def batched(self, axes: Sequence[int | None]) -> Run:
        """Return a run for batches, which computes the function again, for each example."""
        run, count = self._run, len(axes) - sum(self._used)

        def example(values: list[Tensor]) -> list[Tensor]:
            xs = values[:count]
            with GradientTape() as tape:
                sources = run.watched(tape, xs)
                results = run.compute(xs)
            rest = iter(values[count:])
            upstream = [next(rest) if use else None for use in self._used]
            grads = Record(tape, results, sources).pulled(upstream, self._wanted)
            return [
                F.zeros_like(x) if g is None else g
                for x, g, there in zip(xs, grads, self.found, strict=False)
                if there
            ]

        self.found = [
            want and is_smooth
            for want, is_smooth in zip(self._wanted, self._run.smooth, strict=False)
        ]
        return Run(example, self._known).batched(axes)


class Call(torch.autograd.Function):  # type: ignore[misc]
    """A run, as a node of PyTorch's graph."""

    @staticmethod
    def forward(run: Run, *tensors: Any) -> Any:
        """Return the results of a run as a tuple."""
        return run.recorded(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the tensors, so that PyTorch notices if they change, and the record."""
        run, *tensors = inputs
        run.smooth = [x.is_floating_point() or x.is_complex() for x in tensors]
        held = torch.empty(0)
        held.run = run  # PyTorch frees it with the tensors, when the graph is not retained
        hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
        if hooks is not None and hooks[0].__module__ != "torch.utils.checkpoint":
            ctx.run = run  # what a hook saves, such as a copy, has no attributes
        ctx.save_for_backward(*tensors, held)
        whole = [y for y in output if not (y.is_floating_point() or y.is_complex())]
        ctx.mark_non_differentiable(*whole)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        """Return the gradients of a run's tensors."""
        *tensors, held = ctx.saved_tensors
        used = [g is not None for g in upstream]
        wanted = ctx.needs_input_grad[1:]
        pull = Pull(getattr(held, "run", None) or ctx.run, used, wanted)
        given = (*tensors, *(g for g in upstream if g is not None))
        found = iter(run_in_torch(pull, given))
        return None, *(next(found) if there else None for there in pull.found)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Refuse: a tape goes backward."""
        raise NotImplementedError(
            "to_torch: PyTorch's forward mode does not reach into gradtape: use reverse mode, such "
            "as torch.func.jacrev, or gradtape.jvp inside the function"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, run: Run, *tensors: Any) -> Any:
        """Run on batches."""
        found = Call.apply(run.batched(in_dims[1:]), *tensors)
        return found, (0,) * len(found)


class QuickCall(torch.autograd.Function):  # type: ignore[misc]
    """The same outside ``torch.func``: PyTorch inspects a function with ``setup_context`` anew in
    each call, which takes longer than the rest."""

    @staticmethod
    def forward(ctx: Any, run: Run, *tensors: Any) -> Any:
        """Return the results of a run as a tuple."""
        found = run.recorded(tensors)
        Call.setup_context(ctx, (run, *tensors), found)
        return found

    backward = Call.backward
    jvp = Call.jvp


def _transforming() -> bool:
    """Return whether a transformation of ``torch.func`` is running."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def run_in_torch(run: Run, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Run, and let PyTorch record the call if it has a use for it."""
    grad = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    if torch._C._get_tracing_state() is not None:
        raise NotImplementedError(
            "to_torch: torch.jit.trace would keep the values of this run as constants: use "
            "torch.compile, or gradtape.export.onnx"
        )
    if _transforming():
        return tuple(Call.apply(run, *tensors))
    if grad or forward_ad._current_level >= 0:
        run.asked = [x.requires_grad for x in tensors]
        return tuple(QuickCall.apply(run, *tensors))
    return run.plain(tensors)


def outside_dynamo(function: Any) -> Any:
    """Mark a function as one that ``torch.compile`` calls and does not look into.

    ``torch.compiler.disable`` imports the compiler, which takes a second, so it waits for that.
    """
    hidden: list[Any] = []

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return function(*args, **kwargs)
        if not hidden:
            hidden.append(torch.compiler.disable(function))
        return hidden[0](*args, **kwargs)

    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call


def torch_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of gradtape as one of PyTorch."""

    @functools.wraps(fn)
    def in_torch(*args: Any, **kwargs: Any) -> Any:
        given = Parts((args, kwargs), torch.Tensor)
        results: list[Parts] = []

        def compute(xs: list[Tensor]) -> list[Tensor]:
            ins, keywords = given.filled(xs)
            results[:] = [Parts(fn(*ins, **keywords), (Tensor, Variable))]
            return results[0].taken()

        found = run_in_torch(Run(compute), given.tensors)
        return results[0].filled(found)

    made: Callable[..., Any] = outside_dynamo(in_torch)
    return made
