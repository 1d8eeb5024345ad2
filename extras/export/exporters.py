"""``gradtape.export``'s functions: ``to``, ``onnx``, ``stablehlo`` and ``variables``."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ..core.errors import BackendUnavailable, GradtapeError
from ..core.extend import (
    ConcreteFunction,
    Function,
    Graph,
    Module,
    Op,
    Output,
    Symbol,
    Variable,
    flatten,
    forward_only,
    nodes_within,
    paths,
    registry,
    runs_on_host,
    to_numpy,
)

# -- errors ----------------------------------------------------------------------------------------


class ExportError(GradtapeError, NotImplementedError):
    """A function needs something that the other runtime lacks; the message names the op."""


def for_the_host(op: str, target: str) -> ExportError:
    """Return the error for an op whose kernel computes on host memory."""
    return ExportError(
        f"op {op!r}: its kernel runs on the host, a function of NumPy arrays that {target} cannot "
        "hold; compute it outside the exported function"
    )


def needed(module: str, extra: str, name: str) -> Any:
    """Import a module that an extra installs; if it is missing, raise with the install line."""
    try:
        return import_module(module)
    except ImportError as error:
        raise BackendUnavailable(
            f'gradtape.export.{name}: {error}; pip install "gradtape[{extra}]"'
        ) from error


# -- traces ----------------------------------------------------------------------------------------


class Traced(NamedTuple):
    """A traced function with the names for its export.

    Attributes
    ----------
    name
        The function's name.
    program
        Its graph, without the parts that only tapes need.
    inputs
        The names of the graph's inputs.
    outputs
        The returned symbols by name.
    variables
        The names of the variables that it reads or assigns.
    """

    name: str
    program: Graph
    inputs: list[str]
    outputs: dict[str, Symbol]
    variables: dict[Variable, str]


def traced(fn: Any, args: Any, kwargs: Any) -> Traced:
    """Trace a function, module or method for specs or tensors; use an existing trace unchanged."""
    if isinstance(fn, ConcreteFunction):
        concrete = fn
        if args or kwargs:
            raise TypeError(
                "gradtape.export: a trace already has its arguments; pass it without any"
            )
    else:
        for given in args:
            if isinstance(given, os.PathLike) or (isinstance(given, str) and Path(given).suffix):
                raise TypeError(
                    f"gradtape.export: {given!r} looks like a file, but these are the arguments of "
                    f"the function; give a TensorSpec for each tensor, and path={str(given)!r}"
                )
            sizes = given if isinstance(given, (list, tuple)) else ()
            if sizes and {type(n) for n in sizes} <= {int, type(None)}:
                raise TypeError(
                    f"gradtape.export: {given!r} looks like a shape; give a TensorSpec for each "
                    f"tensor, gradtape.TensorSpec({list(given)}), or the tensor itself"
                )
        called: Any = fn
        if isinstance(fn, Module):
            called = called.__call__
        _check_arguments(fn, called, args, kwargs)
        asked = getattr(called, "get_concrete_function", None)
        if asked is None:
            asked = Function(called).get_concrete_function
        concrete = asked(*args, **kwargs)
    program = forward_only(concrete.graph)
    own = [_plain(x.name or f"input_{i}") for i, x in enumerate(program.inputs)]
    taken: set[str] = set()
    inputs = [_new(name, taken) for name in own]
    outputs = {
        _new(name, taken): program.outputs[leaf.index]
        for name, leaf in zip(_labels(concrete.results), flatten(concrete.results), strict=True)
        if isinstance(leaf, Output)
    }
    found = _named(fn)
    variables = {v: _new(found.get(v, v.name), taken) for v in program.variables}
    for v in program.updates:
        variables.setdefault(v, _new(found.get(v, v.name), taken))
    taken.update(f"{variables[v]}_next" for v in program.updates)
    name = fn.name if isinstance(fn, Module) else concrete.name
    return Traced(name, program, inputs, outputs, variables)


def _check_arguments(fn: Any, called: Any, args: Any, kwargs: Any) -> None:
    """Raise if there is nothing to call, or a required argument is missing."""
    if not callable(called):
        raise TypeError(
            "gradtape.export: the first argument is the function or module to export, got "
            f"{fn!r:.80}; give a TensorSpec for each of its arguments, and path= for a file"
        )
    try:
        inspect.signature(called).bind(*args, **kwargs)
    except TypeError as error:
        name = fn.name if isinstance(fn, Module) else getattr(fn, "__name__", repr(fn))
        calls = fn.call_signatures() if isinstance(fn, Module) else []
        seen = f"; it was called with {', '.join(map(str, calls[-1][0]))}" if calls else ""
        raise TypeError(
            f"gradtape.export: {name!r}: {error}; give a TensorSpec or a tensor for each argument, "
            f"such as gradtape.TensorSpec([None, 3]){seen}"
        ) from None
    except ValueError:  # it has no signature
        return


def _plain(path: str) -> str:
    """Return ``x['a'][0]`` as ``x.a.0``."""
    return re.sub(r"\[(?:'([^']*)'|([^\]]*))\]", r".\1\2", path)


def _labels(results: Any) -> Iterator[str]:
    """Yield the names of results: a dict's keys, or ``output`` and the path to the result."""
    for path in paths(results, "output"):
        yield _plain(path).removeprefix("output." if isinstance(results, dict) else "")


def _new(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and mark it as taken."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found


def _named(fn: Any) -> dict[Variable, str]:
    """Return variables' paths, from the module or from the names that a function refers to."""
    found: dict[Variable, str] = {}
    python = getattr(fn, "python_function", fn)
    owner = fn if isinstance(fn, Module) else getattr(python, "__self__", None)
    held = {"": owner} if isinstance(owner, Module) else dict(getattr(owner, "__dict__", {}))
    plain = inspect.unwrap(getattr(python, "__func__", python))
    if inspect.isfunction(plain):
        names = set(plain.__code__.co_names)
        held |= {name: value for name, value in plain.__globals__.items() if name in names}
        for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
            with suppress(ValueError):  # it has no value yet
                held[name] = cell.cell_contents
    for name, value in held.items():
        if isinstance(value, Variable):
            found.setdefault(value, name)
        elif isinstance(value, Module):
            for path, variable in value.named_variables.items():
                found.setdefault(variable, f"{name}/{path}".lstrip("/"))
    return found


def to(
    format: str, fn: Any, *args: Any, path: str | os.PathLike[str] | None = None, **kwargs: Any
) -> Any:
    """Return a function in the format of another runtime, by the format's name.

    Parameters
    ----------
    format
        ``"onnx"``, ``"stablehlo"``, or the name that a plugin gives with the hook
        ``gradtape_exporters``.
    fn
        A function, a module, or a trace (``get_concrete_function``).
    args, kwargs
        The arguments to trace it for, as for ``get_concrete_function``, and options of the
        exporter, such as ``platforms`` of :func:`gradtape.export.stablehlo`.
    path
        The file to write. By default, none is written.

    Returns
    -------
    object
        What the exporter returns; bytes for gradtape's own.

    Raises
    ------
    UnknownName
        If no plugin provides the format; the message lists near names.
    PluginError
        If several plugins provide it, and none takes precedence.
    ExportError
        If an op cannot be exported. The message names the op.

    Examples
    --------
    >>> model = gt.export.to("onnx", lambda x: gt.sin(x) * x, gt.TensorSpec([None, 3]))
    >>> type(model)
    <class 'bytes'>
    """
    return registry().provided("exporter", format)(fn, *args, path=path, **kwargs)


def onnx(fn: Any, *args: Any, path: str | os.PathLike[str] | None = None, **kwargs: Any) -> bytes:
    """Return a function as an ONNX model.

    Parameters
    ----------
    fn
        A function, a module, or a trace (``get_concrete_function``). It may compute gradients and
        assign variables, so a whole training step can be one model.
    args, kwargs
        The arguments to trace it for, as for ``get_concrete_function``: a
        :class:`gradtape.TensorSpec` or a tensor for each tensor. Unknown sizes stay unknown.
    path
        The file to write. By default, none is written.

    Returns
    -------
    bytes
        The model.

    Raises
    ------
    ExportError
        If an op cannot be exported to ONNX. The message names the op.
    BackendUnavailable
        If ndonnx is not installed. The message has the line that installs it.

    Notes
    -----
    Inputs have the names of the function's parameters. Outputs have the keys of the dict that it
    returns, or ``output``, ``output.0`` and so on. Variables are initializers, named by their
    paths. A variable that the function assigns is an input, and an output whose name ends with
    ``_next``; :func:`variables` returns its current value. Unknown sizes are 1 or more.

    Examples
    --------
    >>> model = gt.export.onnx(lambda x: gt.sin(x) * x, gt.TensorSpec([None, 3]))
    >>> type(model)
    <class 'bytes'>
    """
    needed("ndonnx", "onnx", "onnx")
    from .onnx_model import model_of

    blob: bytes = model_of(traced(fn, args, kwargs)).SerializeToString()
    if path is not None:
        Path(path).write_bytes(blob)
    return blob


def stablehlo(
    fn: Any,
    *args: Any,
    path: str | os.PathLike[str] | None = None,
    platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
    **kwargs: Any,
) -> bytes:
    """Return a function as StableHLO, in an artifact of ``jax.export``.

    Parameters
    ----------
    fn
        A function, a module, or a trace (``get_concrete_function``). It may compute gradients and
        assign variables, so a whole training step can be one artifact.
    args, kwargs
        The arguments to trace it for, as for ``get_concrete_function``: a
        :class:`gradtape.TensorSpec` or a tensor for each tensor. Unknown sizes stay unknown.
    path
        The file to write. By default, none is written.
    platforms
        The platforms that can run the artifact. ``("cpu", "cuda", "tpu")`` by default.

    Returns
    -------
    bytes
        The artifact. ``jax.export.deserialize(artifact).call(**inputs)`` returns a dict of outputs.
        If the function assigns variables, call it as ``call(state, **inputs)``, with the dict of
        their values that :func:`variables` returns. It then returns the outputs and the next state.

    Raises
    ------
    ExportError
        If an op cannot be compiled. The message names the op.
    BackendUnavailable
        If JAX is not installed. The message has the line that installs it.

    Notes
    -----
    The names are those of :func:`onnx`. Variables that the function does not assign are constants
    of the artifact. Unknown sizes are 1 or more.

    Examples
    --------
    >>> artifact = gt.export.stablehlo(lambda x: gt.sin(x) * x, gt.TensorSpec([None, 3]))
    >>> type(artifact)
    <class 'bytes'>
    """
    jax = needed("jax", "jax", "stablehlo")
    needed("jax.export", "jax", "stablehlo")
    from ..plugins.jax.compiling import Refused, exporting

    found = traced(fn, args, kwargs)
    owner = registry().backend("jax")
    for node in nodes_within(found.program):
        if isinstance(node.op, Op) and _needs_host(node.op.original, owner):
            raise for_the_host(node.op.name, "StableHLO")
    scope: Any = owner.scope
    with scope():
        step = _step(found, owner)
        inputs = _inputs(found, jax)
        state = {
            found.variables[v]: jax.ShapeDtypeStruct(v.array.shape, v.array.dtype)
            for v in found.program.updates
        }
        called = step if state else lambda **xs: step({}, **xs)[0]
        given = (state,) if state else ()
        token = exporting.set(True)
        try:
            made = jax.export.export(jax.jit(called), platforms=list(platforms))(*given, **inputs)
        except Refused as error:
            raise ExportError(f"{found.name}: {error}") from error
        except Exception as error:  # from a kernel, JAX or the compiler
            raise ExportError(
                f"{found.name}: {_culprit(error)}JAX cannot export it: {error}"
            ) from error
        finally:
            exporting.reset(token)
    blob = bytes(made.serialize())
    if path is not None:
        Path(path).write_bytes(blob)
    return blob


def variables(fn: Any, *args: Any, **kwargs: Any) -> dict[str, NDArray[Any]]:
    """Return the current values of the variables that a function assigns, by their exported names.

    Parameters
    ----------
    fn
        A function, a module or a trace.
    args, kwargs
        The arguments to trace it for.

    Returns
    -------
    dict
        A copy of the value, as a NumPy array, for each variable that the function assigns.

    Examples
    --------
    >>> steps = gt.Variable(0)
    >>> count = gt.function(lambda: steps.assign_add(1))
    >>> gt.export.variables(count)
    {'steps': array(0)}
    """
    found = traced(fn, args, kwargs)
    return {found.variables[v]: to_numpy(v.array).copy() for v in found.program.updates}


def _needs_host(op: Any, owner: Any) -> bool:
    """Return whether nothing computes an op in JAX itself."""
    known = registry()
    if known.lowering(op.name, "stablehlo", owner.name) or (op.name, owner.name) in known.kernels:
        return False
    return runs_on_host(op, owner)


def _culprit(error: BaseException) -> str:
    """Return the name of the op whose kernel raised an error, for a message."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    ran = [frame.f_locals.get("op") for frame in frames]
    names = [op.name for op in ran if isinstance(op, Op)]
    return f"op {names[-1]!r}: " if names else ""


def _step(found: Traced, owner: Any) -> Any:
    """Return a trace as a function ``step(state, **inputs) -> (outputs, state)``."""
    from ..plugins.jax.compiling import pure

    names = found.variables
    constants = {
        v: owner.asarray(to_numpy(v.array)) for v in names if v not in found.program.updates
    }
    run: Any = pure(found.program, owner, [owner.asarray(0.0)])

    def step(state: dict[str, Any], **inputs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        read = [constants[v] if v in constants else state[names[v]] for v in run.reads]
        given = [inputs[name] for name in found.inputs]
        outputs, updates = run(read, given)
        places = {symbol: i for i, symbol in enumerate(found.program.outputs)}
        return (
            {name: outputs[places[symbol]] for name, symbol in found.outputs.items()},
            {names[v]: x for v, x in zip(run.writes, updates, strict=True)},
        )

    return step


def _inputs(found: Traced, jax: Any) -> dict[str, Any]:
    """Return JAX's specs of the inputs; all unknown sizes belong to one scope."""
    scope = jax.export.SymbolicScope()

    def spec(x: Symbol | Variable, name: str) -> Any:
        if x.shape is None:
            raise ExportError(
                f"argument {name!r}: JAX needs to know the number of its axes; give its TensorSpec "
                "a shape"
            )
        text = ",".join(map(str, x.shape))
        return jax.ShapeDtypeStruct(jax.export.symbolic_shape(text, scope=scope), x.dtype)

    return {name: spec(x, name) for name, x in zip(found.inputs, found.program.inputs, strict=True)}
