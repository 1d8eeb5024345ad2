"""The exported trace, the names of its inputs, outputs and variables, and the errors of exports."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import BackendUnavailable, GradtapeError
from ..core.extend import (
    ConcreteFunction,
    Function,
    Graph,
    Module,
    Output,
    Symbol,
    Variable,
    flatten,
    forward_only,
    paths,
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
