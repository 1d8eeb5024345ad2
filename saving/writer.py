"""``save``: a module as one HDF5 file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import h5py
import numpy as np

from ..core.function import ConcreteFunction, Function, RestoredFunction
from ..core.module import Module
from ..core.op import Op
from ..core.registry import registry
from ..core.variable import Variable
from .errors import SaveError
from .golden import evaluate, sample_inputs, why
from .graphs import GraphWriter, encode_signature
from .modules import attributes_of, config_of
from .schema import FORMAT, IDENTIFIER, SEGMENT, VERSION, digest, dump, text_digest
from .traces import SavedFunction, functions_of, trace_call, trace_callable

__all__ = ["save"]


def save(
    module: Module,
    path: str | os.PathLike[str],
    signatures: Mapping[str, Callable[..., Any]] | None = None,
    *,
    golden: bool = True,
) -> None:
    """Save a module, with its variables, functions and custom gradients, to one HDF5 file.

    Methods decorated with :func:`gradtape.function` are saved with all their traces. ``__call__``
    of a module that was called is traced for any batch size (with ``training`` on and off if it
    takes that). Custom gradients are saved as graphs, so that the file needs none of the code that
    made it.

    Parameters
    ----------
    module
        What to save.
    path
        The file. It is replaced at once: there is the old file or the new one, never a part.
    signatures
        Further functions by name, decorated with :func:`gradtape.function`; they come back in the
        ``signatures`` of the loaded module.
    golden
        Store sample inputs with their outputs and first and second gradients, for
        ``gradtape verify``.

    Raises
    ------
    UntraceableGradient
        If a custom gradient cannot be traced; the message names the function and its line.
    SaveError
        If something else cannot be saved. The file at ``path`` is then as it was.

    Examples
    --------
    >>> gt.save(model, "model.h5")
    >>> model = gt.load("model.h5")
    """
    if not isinstance(module, Module):
        raise SaveError(
            f"save: expected a gradtape.Module, got {type(module).__name__}; "
            "assign what you want to save to an attribute of a Module"
        )
    contents = _Contents(module, signatures or {}, golden)
    _write(os.path.abspath(os.fspath(path)), contents)


class _Contents:
    """Everything that goes into the file, made before the file is touched."""

    def __init__(
        self, module: Module, signatures: Mapping[str, Callable[..., Any]], golden: bool
    ) -> None:
        self.datasets: dict[str, np.ndarray[Any, Any]] = {}
        self.texts: dict[str, str] = {}
        self._root = module
        self._modules: list[Module] = [module, *module.submodules]
        self._variables: list[Variable] = list(module.variables)
        self._paths: dict[int, str] = {id(v): path for path, v in module.named_variables.items()}
        self._graphs = GraphWriter(self._variable_number, self._add_constant)
        self._functions: list[dict[str, Any]] = []
        self._concrete = 0
        self._callables: dict[int, int] = {}
        self._golden = golden
        self._known = {cls: name for name, cls in registry().modules.items()}
        records = [self._module(i, item) for i, item in enumerate(self._modules)]
        named = {name: self._signature(name, item) for name, item in signatures.items()}
        self.manifest = {
            "modules": records,
            "signatures": named,
            "functions": self._functions,
            "variables": [self._variable(v) for v in self._variables],
            "requires": self._requirements(),
        }
        digests = {name: digest(array) for name, array in self.datasets.items()}
        digests |= {name: text_digest(text) for name, text in self.texts.items()}
        self.manifest["digests"] = dict(sorted(digests.items()))

    # -- modules -------------------------------------------------------------------------------

    def _module(self, index: int, module: Module) -> dict[str, Any]:
        known = self._known.get(type(module))
        where = f"module {module.name!r} ({type(module).__name__})"
        record: dict[str, Any] = {
            "name": module.name,
            "class": known,
            "class_name": getattr(module, "class_name", type(module).__name__),
            "attributes": attributes_of(module, self._number_of),
            "functions": {},
        }
        if known is not None:
            record["config"] = config_of(module, self._callable, where)
        saved = functions_of(module, where) if known is None else []
        if known is None or index == 0:
            call = self._trace_call(module, index, where, record)
            saved += [call] if call is not None else []
        for function in saved:
            record["functions"][function.name] = self._function(function)
        return record

    def _trace_call(
        self, module: Module, index: int, where: str, record: dict[str, Any]
    ) -> SavedFunction | None:
        try:
            return trace_call(module, f"{where}.__call__")
        except SaveError as error:
            if index == 0:
                raise
            # the module above it is what will be called; say what is missing, and go on
            record["not_traced"] = why(error)
            return None

    def _number_of(self, item: Variable | Module) -> dict[str, int]:
        if isinstance(item, Module):
            for i, module in enumerate(self._modules):
                if module is item:
                    return {"module": i}
        return {"variable": self._variable_number(item)}  # type: ignore[arg-type]

    # -- variables and constants ---------------------------------------------------------------

    def _variable_number(self, variable: Variable) -> int:
        for i, known in enumerate(self._variables):
            if known is variable:
                return i
        # a function reads a variable that the module does not hold: it comes along
        self._variables.append(variable)
        self._paths[id(variable)] = f"captured/{len(self._variables) - 1}"
        return len(self._variables) - 1

    def _variable(self, variable: Variable) -> dict[str, Any]:
        path = self._paths[id(variable)]
        for part in path.split("/"):
            if not SEGMENT.match(part):
                raise SaveError(
                    f"variable {path!r}: {part!r} cannot be a name in a file; use letters, digits, "
                    "'_', '.', '-' and spaces"
                )
        dataset = f"/variables/{path}"
        self._add(dataset, np.asarray(variable.numpy()))
        return {
            "dataset": dataset,
            "name": variable.name,
            "trainable": variable.trainable,
            "shape": list(variable.shape),
            "dtype": variable.dtype.name,
        }

    def _add(self, path: str, array: np.ndarray[Any, Any]) -> None:
        if path in self.datasets:
            raise SaveError(f"two things would be stored at {path}; rename one of the attributes")
        self.datasets[path] = array

    def _add_constant(self, array: np.ndarray[Any, Any]) -> str:
        path = f"/constants/{len([p for p in self.datasets if p.startswith('/constants/')])}"
        self._add(path, np.array(array))
        return path

    # -- functions -----------------------------------------------------------------------------

    def _callable(self, function: Any, module: Module, where: str) -> int:
        known = self._callables.get(id(function))
        if known is None:
            known = self._function(trace_callable(function, module, where))
            self._callables[id(function)] = known
        return known

    def _signature(self, name: str, function: Any) -> int:
        if not IDENTIFIER.match(name):
            raise SaveError(f"signatures: {name!r} is not an identifier")
        if isinstance(function, ConcreteFunction):
            function = RestoredFunction(name, _plain_signature(function), [function])
        if isinstance(function, Function) and function.input_signature is not None:
            function.get_concrete_function()
        if (
            not isinstance(function, (Function, RestoredFunction))
            or not function.concrete_functions
        ):
            raise SaveError(
                f"signatures: {name!r} must be a gradtape.function that has an input_signature or "
                "has been called"
            )
        concrete = function.concrete_functions
        return self._function(SavedFunction(name, function.signature, concrete, function))

    def _function(self, function: SavedFunction) -> int:
        number = len(self._functions)
        record: dict[str, Any] = {
            "name": function.name,
            "parameters": encode_signature(function.signature),
            "traces": [],
        }
        self._functions.append(record)
        for concrete in function.concrete:
            path = f"/functions/{self._concrete}"
            self._concrete += 1
            self.texts[path] = dump(self._graphs.function(concrete))
            trace: dict[str, Any] = {"dataset": path}
            if self._golden:
                self._add_golden(trace, path.rpartition("/")[2], function, concrete)
            record["traces"].append(trace)
        return number

    def _add_golden(
        self,
        trace: dict[str, Any],
        number: str,
        function: SavedFunction,
        concrete: ConcreteFunction,
    ) -> None:
        cases = []
        for i, inputs in enumerate(sample_inputs(concrete, int(number))):
            names = self._paths
            variables = self._variables
            try:
                values = evaluate(function.original, concrete, inputs, variables, names)
            except Exception as error:  # the samples are ours, not the user's: not every one fits
                trace.setdefault("not_sampled", why(error))
                continue
            replayed = evaluate(concrete, concrete, inputs, variables, names)
            _compare(function.name, values, replayed)
            base = f"/golden/{number}/{i}"
            for j, array in enumerate(inputs):
                self._add(f"{base}/inputs/{j}", array)
            for j, array in enumerate(values.values()):
                self._add(f"{base}/values/{j}", array)
            cases.append({"case": base, "inputs": len(inputs), "values": list(values)})
        if cases:
            trace["golden"] = cases

    # -- plugins -------------------------------------------------------------------------------

    def _requirements(self) -> list[dict[str, Any]]:
        needed: dict[str, dict[str, Any]] = {}

        def need(info: Any, kind: str, name: str) -> None:
            label = info.distribution or info.name
            entry = needed.setdefault(
                f"{label}:{info.name}",
                {
                    "plugin": info.name,
                    "distribution": info.distribution,
                    "version": info.version,
                    "ops": [],
                    "modules": [],
                },
            )
            entry[kind].append(name)

        for name, op in sorted(self._graphs.ops.items()):
            need(_provider(op), "ops", name)
        for cls in {type(module) for module in self._modules}:
            class_name = self._known.get(cls)
            if class_name is not None:
                need(registry().owner("module", class_name), "modules", class_name)
        for entry in needed.values():
            entry["modules"].sort()
        return [needed[key] for key in sorted(needed)]


def _provider(op: Op) -> Any:
    info = registry().owner("op", op.name)
    if info is None:
        raise SaveError(f"op {op.name!r} belongs to no registered plugin, so no file can name it")
    return info


def _plain_signature(concrete: ConcreteFunction) -> Any:
    import inspect

    kind = inspect.Parameter.POSITIONAL_ONLY
    count = len(concrete.arguments[0])
    return inspect.Signature([inspect.Parameter(f"arg{i}", kind) for i in range(count)])


def _compare(
    name: str, values: Mapping[str, np.ndarray[Any, Any]], replayed: Mapping[str, Any]
) -> None:
    """Refuse to save a trace that does not compute what the Python code computes."""
    wrong = [key for key in values if key not in replayed]
    for key, value in values.items():
        if key in replayed:
            tolerance = 1e-3 if value.dtype.itemsize <= 4 else 1e-6
            scale = np.max(np.abs(value), initial=1.0) if value.dtype.kind in "fc" else 1.0
            if value.shape != replayed[key].shape or not np.allclose(
                value, replayed[key], rtol=tolerance, atol=tolerance * scale, equal_nan=True
            ):
                wrong.append(key)
    if wrong:
        raise SaveError(
            f"function {name!r}: the trace does not give the {', '.join(wrong)} of the Python "
            "code; it may depend on something that is not an argument or a Variable (a global, "
            "NumPy's random numbers, a branch on a value). Save with golden=False to store the "
            "trace anyway."
        )


def _write(path: str, contents: _Contents) -> None:
    """Write to a temporary file beside ``path``, make sure it is on disk, then put it in place."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise SaveError(f"{path}: there is no folder {folder}")
    handle, temporary = -1, ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=".gradtape-", suffix=".h5", dir=folder)
        os.close(handle)
        with h5py.File(temporary, "w", libver=("v110", "v110")) as file:
            _fill(file, contents)
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        _sync(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise SaveError(f"{path}: cannot be written ({error})") from error
    finally:
        if temporary:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
    with contextlib.suppress(OSError):  # not every system lets a folder be synced
        _sync(folder)


def _fill(file: h5py.File, contents: _Contents) -> None:
    manifest = dump(contents.manifest)
    for name, text in (
        ("format", FORMAT),
        ("format_version", ".".join(map(str, VERSION))),
        ("manifest_sha256", text_digest(manifest)),
    ):
        file.attrs[name] = np.bytes_(text)
    for path, text in {"/manifest": manifest, **contents.texts}.items():
        data = text.encode()
        file.create_dataset(path, data=data, dtype=h5py.string_dtype("utf-8", len(data)))
    for path, array in contents.datasets.items():
        file.create_dataset(path, data=np.ascontiguousarray(array).reshape(array.shape))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
