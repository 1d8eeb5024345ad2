"""gradtape's functions and models in programs of JAX.

A function is traced once for each signature. Its trace runs in one of two ways: JAX calls back to
the host (``pure_callback``), or, inside ``gradtape.backend("jax")``, JAX traces the program itself.
Its gradient is another traced function, joined by ``custom_vjp``; so is the gradient's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

import jax
import numpy as np

from ..core.extend import (
    GradientTape,
    Read,
    Tensor,
    TensorSpec,
    Variable,
    calling_in,
    current_backend,
    function,
    init_scope,
    is_differentiable,
    is_unbuilt,
    nodes_within,
    numpy_dtype,
    registry,
    to_numpy,
)
from .calls import name_of, values_of
from .jax_arrays import conjugate, packed, packed_dtype, to_jax, unpacked
from .trees import Parts

Compute = Callable[[list[Tensor]], list[Tensor]]
#: How many programs a function keeps, for arguments that differ in more than tensors' values.
_MOST = 64


class Program:
    """A computation of gradtape that JAX can call and differentiate.

    Parameters
    ----------
    name
        The function's name, for messages.
    compute
        A function of a list of tensors that returns one.
    variables
        The variables whose values are arguments, before the tensors.
    trained
        Which of them have gradients.

    Attributes
    ----------
    parts
        The structure of the last result, if ``compute`` sets it.
    """

    parts: Any = None

    def __init__(
        self,
        name: str,
        compute: Compute,
        variables: Sequence[Variable] = (),
        trained: Sequence[bool] = (),
    ) -> None:
        self.name, self._compute = name, compute
        self._variables, self._trained = variables, trained
        self._traced = function(lambda xs: compute(xs))
        self._known: dict[Any, Any] = {}
        self._parts: dict[Any, Any] = {}
        self._tracing = RLock()
        self._pulls: dict[Any, Program] = {}
        self.call = jax.custom_vjp(self.run)
        self.call.defvjp(self._forward, self._backward)

    def _trace(self, xs: Sequence[Any]) -> Any:
        """Return the trace for the shapes and dtypes of arrays."""
        key = _signature(xs)
        found = self._known.get(key)
        if found is None:
            specs = [TensorSpec(shape, dtype) for shape, dtype in key[1:]]
            with init_scope(), self._tracing:
                self.parts = None
                found = self._traced.get_concrete_function(specs)
                if self.parts is not None:  # another backend may have traced it
                    self._parts[found] = self.parts
            self._check(found.graph)
            self._known[key] = found
        return found

    def filled(self, given: Sequence[Any], results: Sequence[Any]) -> Any:
        """Return results in the structure of those of the function for such arguments."""
        return self._parts[self._trace(given)].filled(results)

    def _check(self, graph: Any) -> None:
        known = {v.id for v in self._variables}
        others = [v for v in graph.updates if v.id not in known]
        changed = [v.name for v in others if v.name != "host_calls"]  # it only keeps their order
        if changed:
            raise TypeError(
                f"to_jax: {self.name} assigns the variables {changed}, or draws random numbers "
                "from them, and JAX calls functions as often as it likes: pass the "
                "gradtape.Module that holds them, whose state is an argument and a result"
            )
        reads = [node.op.variable for node in nodes_within(graph) if isinstance(node.op, Read)]
        read = [v.name for v in reads if v.id not in known and v.trainable]
        if read:
            raise TypeError(
                f"to_jax: {self.name} reads the trainable variables {read}, which JAX would not "
                "see: pass the gradtape.Module that holds them, or their values as arguments"
            )

    def run(self, values: Sequence[Any], xs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the results, and the new values of the variables."""
        trace = self._trace(xs)
        if current_backend().name == "jax":
            return self._in_program(trace, values, xs)
        arrays = [*values, *xs]
        if not any(isinstance(x, jax.core.Tracer) for x in arrays):
            return self._sorted(list(map(to_jax, self._on_host(trace, arrays))), len(values))
        shapes = [(y.shape, _allowed(y.dtype)) for y in _outputs(trace)]
        shapes += [(x.shape, x.dtype) for x in values]
        spec: Any = jax.ShapeDtypeStruct
        found = jax.pure_callback(
            functools.partial(self._called_back, trace),
            [spec(*x) for x in shapes],
            *arrays,
            vmap_method="sequential",
        )
        return self._sorted(list(found), len(values))

    @staticmethod
    def _sorted(found: list[Any], count: int) -> tuple[list[Any], list[Any]]:
        end = len(found) - count
        return found[:end], found[end:]

    def _called_back(self, trace: Any, *arrays: Any) -> list[Any]:
        return self._on_host(trace, arrays)

    def _on_host(self, trace: Any, arrays: Sequence[Any]) -> list[Any]:
        """Run on arrays of NumPy."""
        count = len(self._variables)
        given = [np.asarray(x) for x in arrays]
        before = [unpacked(x, v.dtype) for x, v in zip(given, self._variables, strict=False)]
        with init_scope(), values_of(self._variables, before):
            found = trace([Tensor(x) for x in given[count:]])
            after = [to_numpy(v.array) for v in self._variables]
        results = [to_numpy(y.array) for y in found]
        results = [np.asarray(y, _allowed(y.dtype)) for y in results]
        return results + [packed(x, old.dtype) for x, old in zip(after, given, strict=False)]

    def _in_program(
        self, trace: Any, values: Sequence[Any], xs: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Run on JAX's arrays and tracers, op by op: a compiler sees all of it."""
        from ..plugins.jax.compiling import pure

        backend: Any = registry().backend("jax")
        with backend.scope():
            step: Any = pure(trace.graph, backend, list(xs))
            now = dict(zip(self._variables, values, strict=True))
            now = {v: unpacked(x, v.dtype) for v, x in now.items()}
            others = [v for v in step.reads if v not in now]
            now |= {v: backend.asarray(to_numpy(v.array)) for v in others}
            outputs, updates = step([now[v] for v in step.reads], list(xs))
            now |= dict(zip(step.writes, updates, strict=True))
            after = [packed(now[v], x.dtype) for v, x in zip(self._variables, values, strict=True)]
            results = [outputs[leaf.index] for leaf in trace.results]
            return [y.astype(_allowed(y.dtype)) for y in results], after

    # -- derivatives -------------------------------------------------------------------------------

    def _forward(self, values: Any, xs: Any) -> Any:
        return self.call(values, xs), (values, xs)

    def _backward(self, kept: Any, upstream: Any) -> Any:
        """Return the gradients; JAX's of complex numbers are conjugates of gradtape's."""
        values, xs = kept
        smooth = tuple([is_differentiable(numpy_dtype(x.dtype)) for x in xs])
        used = tuple([is_differentiable(y.dtype) for y in _outputs(self._trace(xs))])
        ends = [conjugate(g) for g, use in zip(upstream[0], used, strict=True) if use]
        if smooth not in self._pulls:
            self._pulls[smooth] = self._pulled(smooth)
        found = iter(self._pulls[smooth].call(values, [*xs, *ends])[0])
        grads = [conjugate(next(found)) if want else None for want in (*self._trained, *smooth)]
        count = len(values)
        return grads[:count], grads[count:]

    def _pulled(self, smooth: Sequence[bool]) -> Program:
        """Return the program of the gradients, of the same arguments and upstream gradients."""
        count = len(smooth)
        weights = [v for v, want in zip(self._variables, self._trained, strict=True) if want]

        def pull(values: list[Tensor]) -> list[Tensor]:
            xs, upstream = values[:count], values[count:]
            sources = [x for x, want in zip(xs, smooth, strict=True) if want]
            with GradientTape() as tape:
                tape.watch(sources)
                results = [y for y in self._compute(xs) if is_differentiable(y.dtype)]
            found: list[Tensor] = tape.gradient(
                results, [*weights, *sources], upstream, unconnected_gradients="zero"
            )
            return found

        return Program(f"gradient of {self.name}", pull, self._variables, self._trained)


def _signature(xs: Sequence[Any]) -> tuple[Any, ...]:
    return (current_backend().name, *[(x.shape, str(x.dtype)) for x in xs])


def _outputs(trace: Any) -> list[Any]:
    return [trace.graph.outputs[leaf.index] for leaf in trace.results]


def _allowed(dtype: Any) -> Any:
    """Return the dtype that JAX uses for one: of 32 bits, unless it allows 64."""
    return jax.dtypes.canonicalize_dtype(dtype)


_ARRAYS = (jax.Array, np.ndarray)


class Programs:
    """The programs of a function, by its arguments other than tensors.

    Parameters
    ----------
    make
        Makes one for arguments and a mode.
    """

    def __init__(self, make: Callable[[Parts, Any], Program]) -> None:
        self._make = make
        self._known: dict[Any, Program] = {}

    def of(self, given: Parts, mode: Any = None) -> Program:
        """Return the program for arguments."""
        key = (given.key(), mode)
        try:
            found = self._known.get(key)
        except TypeError:  # something in it has no hash
            return self._make(given, mode)
        if found is None:
            while len(self._known) >= _MOST:
                self._known.pop(next(iter(self._known)))
            found = self._known[key] = self._make(given, mode)
        return found


def _program(fn: Callable[..., Any], given: Parts, *variables: Any) -> Program:
    def compute(xs: list[Tensor]) -> list[Tensor]:
        args, kwargs = given.filled(xs)
        program.parts = Parts(fn(*args, **kwargs), (Tensor, Variable))
        found: list[Tensor] = program.parts.taken()
        return found

    program = Program(name_of(fn), compute, *variables)
    return program


def jax_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of gradtape as one of JAX."""
    programs = Programs(lambda given, mode: _program(fn, given))

    @functools.wraps(fn)
    def in_jax(*args: Any, **kwargs: Any) -> Any:
        given = Parts((args, kwargs), _ARRAYS)
        xs = list(map(to_jax, given.taken()))
        program = programs.of(given)
        return program.filled(xs, program.call([], xs)[0])

    return in_jax


def jax_model(model: Any) -> tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]:
    """Return a model of gradtape as a pure function, its parameters and its state."""
    if is_unbuilt(model):
        raise ValueError(
            f"to_jax: {model.name!r} has no weights yet: call it once with gradtape, or set its "
            "input shape"
        )
    known = model.named_variables
    trainable = {v.id for v in model.trainable_variables}
    trained = [v.id in trainable for v in known.values()]

    def called(training: bool) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with calling_in(training):
                return model(*args, **kwargs)

        call.__name__ = model.name
        return call

    programs = Programs(
        lambda given, training: _program(called(training), given, [*known.values()], trained)
    )

    def apply(
        params: Any, state: Any, *args: Any, training: bool = False, **kwargs: Any
    ) -> tuple[Any, dict[str, Any]]:
        held = [(params if want else state) for want in trained]
        values = [_value(x, name, v) for x, (name, v) in zip(held, known.items(), strict=True)]
        given = Parts((args, kwargs), _ARRAYS)
        xs = list(map(to_jax, given.taken()))
        program = programs.of(given, bool(training))
        results, after = program.call(values, xs)
        rest = zip(known, after, trained, strict=True)
        return program.filled(xs, results), {name: x for name, x, want in rest if not want}

    params: dict[str, Any] = {}
    state: dict[str, Any] = {}
    for (name, v), want in zip(known.items(), trained, strict=True):
        value = to_numpy(v.array)
        dtype = packed_dtype(value.dtype)
        if _allowed(dtype) != dtype:
            raise TypeError(
                f"to_jax: the variable {name!r} has {dtype}, which JAX does not keep: set "
                "jax.config.update('jax_enable_x64', True) before"
            )
        (params if want else state)[name] = jax.numpy.array(packed(value, dtype))
    return apply, params, state


def _value(values: Any, name: str, variable: Variable) -> Any:
    """Return the value that is given for a variable."""
    try:
        x = to_jax(values[name])
    except (KeyError, TypeError) as error:
        raise ValueError(f"to_jax: params and state lack {name!r}: {error}") from None
    if (x.shape, x.dtype) not in (
        (variable.shape, variable.dtype),
        ((*variable.shape, 2), np.uint32),
    ):
        raise ValueError(
            f"to_jax: {name!r} is {x.dtype}{list(x.shape)}, and {variable.dtype}"
            f"{list(variable.shape)} in the model"
        )
    return x
