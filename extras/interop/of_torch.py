"""PyTorch's functions and modules in programs of gradtape.

A call is one record of a tape, with a custom gradient that PyTorch's autograd computes from the
graph of the call. In a trace it is a ``host_call``, which computes the graph again for gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from ..core.extend import (
    Batched,
    Module,
    Tensor,
    TensorSpec,
    Variable,
    active_graph,
    active_tapes,
    flatten,
    is_differentiable,
    public_package,
)
from .calls import (
    IN_VMAP,
    name_of,
    pulled_in_trace,
    recorded,
    rows_of,
    specs_of,
    with_rows,
)
from .torch_arrays import array_of, own_arrays, tensor_of
from .trees import Parts

Compute = Callable[[list[Any]], Any]


class Held:
    """A graph of PyTorch, and the tensors of gradtape that it was computed from.

    Parameters
    ----------
    name
        The function's name.
    inputs, leaves
        Tensors of gradtape, and PyTorch's leaves of the graph with their values.
    results
        What PyTorch computed.
    arrays
        The results as arrays.
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[Tensor],
        leaves: Sequence[Any],
        results: Sequence[Any],
        arrays: Sequence[Any],
    ) -> None:
        self._name, self._inputs, self._leaves, self._results = name, inputs, leaves, results
        self._arrays = arrays
        self._checked = False

    def recorded(self) -> list[Tensor]:
        """Return the results as tensors that tapes follow to the inputs."""
        return recorded(self._name, self._inputs, self._arrays, self.pull)

    def pull(self, *upstream: Tensor) -> list[Any]:
        """Return the gradients of the inputs; tapes may differentiate these again."""
        return pulled_in_trace(self._inputs, self._pulled, upstream)

    def _pulled(self, inputs: Sequence[Tensor], upstream: Sequence[Tensor]) -> list[Any]:
        again = bool(active_tapes.get())
        pairs = [(y, g) for y, g in zip(self._results, upstream, strict=True) if y.requires_grad]
        if not pairs:
            return [None] * len(inputs)
        if not self._checked:
            self._refuse_others([y for y, _ in pairs])
        rows = rows_of([g.array for _, g in pairs])
        if rows and again:
            raise NotImplementedError(
                f"from_torch: the gradient of {self._name} is differentiated for many rows at once "
                "while a tape records: take rows one by one, as in gradtape.grad"
            )
        ends = [tensor_of(with_rows(g.array, rows)).requires_grad_(again) for _, g in pairs]
        with torch.inference_mode(False):
            grads: Sequence[Any] = torch.autograd.grad(
                [y for y, _ in pairs],
                self._leaves,
                ends,
                retain_graph=True,
                create_graph=again,
                allow_unused=True,
                is_grads_batched=bool(rows),
            )
        there = [g for g in grads if g is not None]
        arrays = own_arrays(there, ())
        if again:
            sources = [*inputs, *(g for _, g in pairs)]
            leaves = [*self._leaves, *ends]
            found = iter(
                Held(f"gradient of {self._name}", sources, leaves, there, arrays).recorded()
            )
        else:
            found = (Tensor(Batched(x, rows[0].level) if rows else x) for x in arrays)
        return [None if g is None else next(found) for g in grads]

    def _refuse_others(self, results: Sequence[Any]) -> None:
        """Raise if the graph has leaves that are not inputs: they would get no gradient."""
        known = {id(x) for x in self._leaves}
        others = [y for y in results if y.grad_fn is None and id(y) not in known]
        nodes = [y.grad_fn for y in results if y.grad_fn is not None]
        seen = set(nodes)
        while nodes:
            node = nodes.pop()
            leaf = getattr(node, "variable", None)
            if leaf is not None and id(leaf) not in known:
                others.append(leaf)
            more = {after for after, _ in node.next_functions if after is not None} - seen
            seen |= more
            nodes.extend(more)
        if others:
            shapes = ", ".join(str(list(x.shape)) for x in others)
            raise TypeError(
                f"from_torch: {self._name} uses tensors that require gradients and are not its "
                f"arguments (of shape {shapes}): pass them as arguments, use from_torch on the "
                "torch.nn.Module that holds them, or detach them"
            )
        self._checked = True


@contextmanager
def _mode(grad: bool) -> Iterator[None]:
    with ExitStack() as stack:
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.set_grad_enabled(grad))
        yield


def _computed(name: str, compute: Compute, given: list[Any]) -> Any:
    try:
        return compute(given)
    except RuntimeError as error:
        if "numpy() on Tensor that requires grad" not in str(error):
            raise
        raise TypeError(
            f"from_torch: {name} gives a tensor of PyTorch that a tape follows to gradtape or "
            "NumPy: pass gradtape's tensors and variables as arguments, so that they are tensors "
            "of PyTorch in the function, or detach the tensor"
        ) from error


def _eager(name: str, compute: Compute, xs: Sequence[Tensor]) -> tuple[Parts, list[Tensor]]:
    """Call PyTorch, and record the call if there are tapes."""
    grad = bool(active_tapes.get())
    with _mode(grad):
        given = [tensor_of(x.array) for x in xs]
        smooth = [grad and is_differentiable(x.dtype) for x in xs]
        for t, is_smooth in zip(given, smooth, strict=True):
            if is_smooth:
                t.requires_grad_()
        before = [t._version for t in given]
        parts = Parts(_computed(name, compute, given), torch.Tensor)
        for i, (t, version) in enumerate(zip(given, before, strict=True)):
            if t._version != version:
                raise RuntimeError(
                    f"from_torch: {name} wrote to argument {i} of shape {list(t.shape)} in place, "
                    "and gradtape's tensors must not change: this one has changed, and is not to "
                    "be used any more; call x.clone() in the function before it writes"
                )
        results, parts.tensors = parts.tensors, []
        arrays = own_arrays(results, {t.untyped_storage().data_ptr() for t in given})
    if not grad:
        return parts, [Tensor(array) for array in arrays]
    inputs = [x for x, is_smooth in zip(xs, smooth, strict=True) if is_smooth]
    leaves = [t for t, is_smooth in zip(given, smooth, strict=True) if is_smooth]
    return parts, Held(name, inputs, leaves, results, arrays).recorded()


def _in_trace(
    name: str, compute: Compute, xs: Sequence[Tensor], results: Any
) -> tuple[Parts, list[Tensor]]:
    """Add a call to a trace. Its random numbers depend on a seed that each run draws."""
    if results is None:
        parts, specs = _found_out(name, compute, xs)
    else:
        parts, specs = Parts(results, TensorSpec), flatten(results)
    call = public_package().host_call
    seed = call(_drawn_seed, results=TensorSpec((), "int64"))

    def run(seed: Tensor, *values: Tensor) -> list[Tensor]:
        with _seeded(seed.item()):
            return _eager(name, compute, values)[1]

    return parts, call(run, seed, *xs, results=list(specs))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Run a block with its own random numbers."""
    if torch.cuda.is_initialized():
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
        return
    generator = torch.default_generator
    state = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(state)


def _drawn_seed() -> Tensor:
    return Tensor(torch.randint(2**62, ()).numpy())


def _found_out(name: str, compute: Compute, xs: Sequence[Tensor]) -> tuple[Parts, list[TensorSpec]]:
    """Return the structure of a function's result: PyTorch runs it without values."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    def parts(shapes: Sequence[Sequence[int]]) -> Parts:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            given = [
                torch.empty(shape, dtype=getattr(torch, x.dtype.name))
                for x, shape in zip(xs, shapes, strict=True)
            ]
            return Parts(compute(given), torch.Tensor)

    return specs_of("from_torch", name, parts, xs)


def call_torch(name: str, compute: Compute, xs: Sequence[Tensor], results: Any = None) -> Any:
    """Return what a function of PyTorch's tensors computes, with tensors of gradtape."""
    if any(getattr(x.array, "batched", False) for x in xs):
        raise NotImplementedError(f"from_torch: {name} computes in PyTorch, and {IN_VMAP}")
    if active_graph.get() is None:
        parts, found = _eager(name, compute, xs)
    else:
        parts, found = _in_trace(name, compute, xs, results)
    return parts.filled(found)


def _without_tensors(tree: Any) -> None:
    for leaf in flatten(tree):
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
            raise TypeError(
                "from_torch: an argument is a torch.Tensor that requires gradients, which gradtape "
                "does not follow: pass a gradtape tensor or variable, or x.detach()"
            )


def gradtape_function(fn: Callable[..., Any], results: Any) -> Callable[..., Any]:
    """Return a function of PyTorch as one of gradtape."""
    name = name_of(fn)

    def of_torch(*args: Any, **kwargs: Any) -> Any:
        given = Parts((args, kwargs), (Tensor, Variable))
        _without_tensors((args, kwargs))

        def compute(tensors: list[Any]) -> Any:
            ins, keywords = given.filled(tensors)
            return fn(*ins, **keywords)

        return call_torch(name, compute, given.taken(), results)

    of_torch.__name__ = of_torch.__qualname__ = name
    of_torch.__doc__ = getattr(fn, "__doc__", None)
    of_torch.__wrapped__ = fn  # type: ignore[attr-defined]
    return of_torch


class OfTorch(Module):
    """A module of PyTorch as a model of gradtape.

    Attributes
    ----------
    weights : dict
        The variables, nested as PyTorch's names are.
    """

    def __init__(self, module: Any, results: Any = None) -> None:
        super().__init__()
        self._module, self._results = module, results
        self._whole = _Whole(module)
        self.weights: dict[str, Any] = {}
        self._names: list[str] = []
        self._buffers = {name for name, _ in module.named_buffers()}
        for name, x in (*module.named_parameters(), *module.named_buffers()):
            value = array_of(x.detach().cpu().clone())
            trainable = name not in self._buffers and x.requires_grad
            variable = Variable(value, trainable=trainable, name=name.rpartition(".")[2])
            self._names.append(name)
            *folders, last = name.split(".")
            home = self.weights
            for folder in folders:
                home = home.setdefault(folder, {})
            home[last] = variable

    def _held(self) -> list[Variable]:
        """Return the variables in the order of PyTorch's names."""
        found: list[Any] = []
        for name in self._names:
            home: Any = self.weights
            for part in name.split("."):
                home = home[part]
            found.append(home)
        return found

    def __call__(self, *args: Any, training: bool | None = None, **kwargs: Any) -> Any:
        """Call the module; without ``training`` it runs in its own mode."""
        given = Parts((args, kwargs), (Tensor, Variable))
        _without_tensors((args, kwargs))
        count, names, held = len(self._names), self._names, self._held()
        traced = active_graph.get() is not None

        def compute(tensors: list[Any]) -> Any:
            state = dict(zip(names, tensors[:count], strict=True))
            state.update({n: state[n].detach().clone() for n in self._buffers})
            before = {n: x for n, x in zip(names, tensors) if n in self._buffers}
            with _lock(self._module), _training(self._module, training):
                result, after = torch.func.functional_call(
                    self._whole,
                    {f"module.{n}": x for n, x in state.items()},
                    given.filled(tensors[count:]),
                )
            # a trace returns all of them: whether one changes is known in each run
            changed = {
                n: after[n].detach()
                for n, x in before.items()
                if traced or not torch.equal(after[n], x)
            }
            return result, changed

        values = [v.value for v in held]
        specs = None
        if self._results is not None:
            buffers = [(n, v) for n, v in zip(names, held, strict=True) if n in self._buffers]
            specs = self._results, {n: TensorSpec(v.shape, v.dtype) for n, v in buffers}
        name = name_of(self._module)
        result, changed = call_torch(name, compute, [*values, *given.taken()], specs)
        variables = dict(zip(names, held, strict=True))
        for n, value in changed.items():
            variables[n].assign(value)
        return result

    def update_module(self) -> Any:
        """Copy the values of the variables to the module of PyTorch.

        Returns
        -------
        torch.nn.Module
            The module.
        """
        state = dict(zip(self._names, self._held(), strict=True))
        with torch.no_grad():
            for n, x in (*self._module.named_parameters(), *self._module.named_buffers()):
                x.copy_(torch.from_numpy(np.array(state[n].numpy())))
        return self._module


class _Whole(torch.nn.Module):  # type: ignore[misc]
    """Calls a module, and returns its buffers too: it may have replaced them."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, args: Any, kwargs: Any) -> Any:
        return self.module(*args, **kwargs), dict(self.module.named_buffers())


#: By module: a call replaces its parameters and its mode, so threads take turns.
_LOCKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _lock(module: Any) -> Any:
    return _LOCKS.setdefault(module, RLock())


@contextmanager
def _training(module: Any, training: bool | None) -> Iterator[None]:
    """Run a block with a module in training or not, then restore the mode of each part."""
    if training is None:
        yield
        return
    before = [(part, part.training) for part in module.modules()]
    module.train(training)
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


def gradtape_module(module: Any, results: Any) -> OfTorch:
    """Return a module of PyTorch as a model of gradtape."""
    return OfTorch(module, results)
