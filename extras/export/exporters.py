"""``gradtape.export``'s functions: ``to``, ``onnx``, ``stablehlo`` and ``variables``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from traceback import walk_tb
from typing import Any

from numpy.typing import NDArray

from ..core.extend import Op, Symbol, Variable, nodes_within, registry, runs_on_host, to_numpy
from .tracing import ExportError, Traced, for_the_host, needed, traced


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
    owner = registry().backend("jax")  # whose package may have been left out
    from ..plugins.jax.compiling import Refused, exporting

    found = traced(fn, args, kwargs)
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
    special = known.owner("kernel", (op.name, owner.name))
    if special or known.lowering(op.name, "stablehlo", owner.name):
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
