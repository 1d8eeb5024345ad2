"""``save``: a module as one HDF5 file."""

from __future__ import annotations

import contextlib
import inspect
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import h5py
import numpy as np

from ..core.errors import EndlessLoop
from ..core.extend import (
    ConcreteFunction,
    Function,
    Module,
    Op,
    RestoredFunction,
    Variable,
    frozen_variables,
    init_scope,
    is_frozen,
    keeping_calls,
    registry,
)
from .compare import compared
from .errors import SaveError
from .golden import packed, why
from .graphs import GraphWriter, encode_signature, spec_record
from .modules import LoadedModule, attributes_of, config_of, is_ordered, signatures_of
from .samples import Shapes, sample_inputs
from .schema import (
    FORMAT,
    IDENTIFIER,
    MAX_DEPTH,
    MAX_OBJECTS,
    SEGMENT,
    VERSION,
    digest,
    dump,
    is_attribute,
    text_digest,
    variable_label,
)
from .traces import (
    Met,
    NeedsSizes,
    SavedFunction,
    functions_of,
    trace_call,
    trace_callable,
    with_traces,
)

__all__ = ["save"]


def save(
    module: Module,
    path: str | os.PathLike[str],
    signatures: Mapping[str, Callable[..., Any]] | None = None,
    *,
    golden: bool = True,
    custom_gradients: bool = True,
    sizes: str = "open",
) -> None:
    """Save a module, with its variables, functions and custom gradients, to one HDF5 file.

    Methods decorated with :func:`gradtape.function` are saved with all their traces. ``__call__``
    of a module that was called is traced for any batch size (with ``training`` on and off if it
    takes that). Custom gradients are saved as graphs, so that the file needs none of the code that
    made it.

    Before anything is written, every trace is compared with the Python code: outputs, gradients
    and what becomes of variables, at batches of 1, 2 and 3 and at the size that was seen, with
    random numbers for inputs. A call that the Python code itself refuses is left out.

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
        Compare the traces with the Python code (the default), and store sample inputs with their
        outputs and first and second gradients, for ``gradtape verify``. Without, nothing of that.
    custom_gradients
        Store custom gradients (the default). Without them a loaded function still gives its
        results, but asking for a gradient through one of them raises ``LookupError``, and there are
        no samples of it.
    sizes
        ``"open"`` traces calls for any batch size (and for any size in which past calls differ).
        ``"seen"`` traces them for the sizes of past calls alone: for Python code that must know
        them. What is loaded then refuses every other size.

    Raises
    ------
    UntraceableGradient
        If a custom gradient cannot be traced; the message names the function and its line.
    SaveError
        If something else cannot be saved: among it, what cannot be traced for open sizes, and a
        trace that differs from the Python code, with the line and both results. The file at
        ``path`` is then as it was.
    ValueError
        If ``sizes`` is neither ``"open"`` nor ``"seen"``.

    Examples
    --------
    >>> import os, tempfile
    >>> model = gt.layers.Dense(2)
    >>> shape = model(gt.ones((1, 3))).shape
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.h5")
    ...     gt.save(model, path)
    ...     loaded = gt.load(path)
    >>> loaded.kernel.tolist() == model.kernel.tolist()
    True
    """
    if not isinstance(module, Module):
        raise SaveError(
            f"save: expected a gradtape.Module, got {type(module).__name__}; "
            "assign what you want to save to an attribute of a Module"
        )
    if sizes not in ("open", "seen"):
        raise ValueError(f'save: sizes is "open" or "seen", got {sizes!r}')
    # what a surrounding tape or trace has no business with; and calls made here are nobody's
    with init_scope(), keeping_calls((module, *module.submodules)):
        contents = _Contents(module, signatures or {}, golden, custom_gradients, sizes)
    _write(os.path.realpath(os.fspath(path)), contents)  # a link stays a link


class _Contents:
    """Everything that goes into the file, made before the file is touched."""

    def __init__(
        self,
        module: Module,
        signatures: Mapping[str, Callable[..., Any]],
        golden: bool,
        custom_gradients: bool,
        sizes: str,
    ) -> None:
        self.datasets: dict[str, np.ndarray[Any, Any]] = {}
        self.texts: dict[str, str] = {}
        self._modules: list[Module] = [module, *module.submodules]
        self._variables: list[Variable] = list(module.variables)
        # where a variable is stored, and what golden vectors call it
        self._places = {id(v): f"/variables/{path}" for path, v in module.named_variables.items()}
        self._labels = {key: variable_label(place) for key, place in self._places.items()}
        # numbers in the file, by identity
        self._met = {id(item): Met.by(item) for item in self._modules}
        self._module_numbers = {id(item): i for i, item in enumerate(self._modules)}
        self._variable_numbers = {id(item): i for i, item in enumerate(self._variables)}
        self._function_numbers: dict[Any, int] = {}
        self._saved: list[SavedFunction] = []  # keeps alive what was numbered by identity
        self._constants = 0
        self._graphs = GraphWriter(self._variable_number, self._add_constant, custom_gradients)
        self._functions: list[dict[str, Any]] = []
        self._golden = golden
        self._sizes = sizes
        self._root_is_called = False
        self._known = {cls: name for name, cls in registry().modules.items()}
        records = [self._module(i, item) for i, item in enumerate(self._modules)]
        if signatures and "signatures" in records[0]["attributes"]:
            raise SaveError(
                "signatures: the module has an attribute 'signatures', which they would replace"
            )
        named = {
            name: self._signature(name, function)
            for name, function in {**signatures_of(module), **signatures}.items()
        }
        manifest = {
            "modules": records,
            "signatures": named,
            "functions": self._functions,
            "variables": [self._variable(v) for v in self._variables],
            "requires": self._requirements(),
        }
        digests = {name: digest(array) for name, array in self.datasets.items()}
        digests |= {name: text_digest(text) for name, text in self.texts.items()}
        manifest["digests"] = dict(sorted(digests.items()))
        self.manifest = dump(manifest, "the module tree")
        objects = {path[:i] for path in digests for i, c in enumerate(f"{path}/") if c == "/"}
        if len(objects) + 1 > MAX_OBJECTS:
            raise SaveError(
                f"{len(objects):,} groups and datasets are more than a file may hold "
                f"({MAX_OBJECTS:,})"
            )

    # -- modules -------------------------------------------------------------------------------

    def _module(self, index: int, module: Module) -> dict[str, Any]:
        known = self._known.get(type(module))
        where = f"module {module.name!r} ({type(module).__name__})"
        if not IDENTIFIER.match(module.name):
            raise SaveError(
                f"{where}: a module's name in a file is made of ASCII letters, digits, '_'"
            )
        record: dict[str, Any] = {
            "name": module.name,
            "class": known,
            "class_name": module.class_name
            if isinstance(module, LoadedModule)
            else type(module).__name__,
            "attributes": attributes_of(module, self._number_of),
            "functions": {},
        }
        if known is None and is_ordered(module):
            record["ordered"] = True
        if is_frozen(module):
            numbers = self._variable_numbers
            held = (numbers.get(id(v)) for v in frozen_variables(module))
            record["frozen"] = [number for number in held if number is not None]
        saved: list[SavedFunction] = []
        untraced = dict(module.untraced) if isinstance(module, LoadedModule) else {}
        if known is not None:
            record["config"] = config_of(module, self._op, self._callable, where)
        else:
            saved, names = functions_of(module, where)
            untraced |= dict.fromkeys(names, "no input_signature, and never called before saving")
        if known is None or index == 0:
            try:
                call = trace_call(module, self._met[id(module)], f"{where}.__call__", self._sizes)
                saved += [call] if call is not None else []
                self._root_is_called |= call is not None and index == 0
            except SaveError as error:
                alone = isinstance(error, NeedsSizes) and not self._root_is_called
                if index == 0 or alone:
                    raise
                # the module above it is what will be called; say what is missing, and go on
                untraced["__call__"] = why(error)
        for function in saved:
            if function.name != "__call__" and not is_attribute(function.name):
                raise SaveError(
                    f"{where}: a function cannot be called {function.name!r} in a file, since "
                    "every module has that, or it is not made of ASCII letters, digits and '_'"
                )
            record["functions"][function.name] = self._function(function)
        if untraced:
            record["untraced"] = untraced
        return record

    def _number_of(self, item: Variable | Module) -> dict[str, int] | None:
        if isinstance(item, Module):
            number = self._module_numbers.get(id(item))
            return None if number is None else {"module": number}  # a class may hide a module
        return {"variable": self._variable_number(item)}

    # -- variables and constants ---------------------------------------------------------------

    def _variable_number(self, variable: Variable) -> int:
        number = self._variable_numbers.get(id(variable))
        if number is None:
            # a function reads a variable that the module does not hold: it comes along
            number = self._variable_numbers[id(variable)] = len(self._variables)
            self._variables.append(variable)
            self._places[id(variable)] = f"/captured/{number}"
            self._labels[id(variable)] = f"captured/{number}"
        return number

    def _variable(self, variable: Variable) -> dict[str, Any]:
        dataset = self._places[id(variable)]
        for part in dataset[1:].split("/"):
            if not SEGMENT.match(part):
                raise SaveError(
                    f"variable {self._labels[id(variable)]!r}: {part!r} cannot be a name in a "
                    "file; use letters, digits, '_', '.', '-' and spaces"
                )
        if dataset.count("/") - 1 > MAX_DEPTH:
            raise SaveError(f"{dataset[:80]}...: nested deeper than {MAX_DEPTH} groups")
        self.datasets[dataset] = np.asarray(variable.numpy())
        return {
            "dataset": dataset,
            "name": variable.name,
            "trainable": variable.trainable,
            "shape": list(variable.shape),
            "dtype": variable.dtype.name,
        }

    def _add_constant(self, array: np.ndarray[Any, Any]) -> str:
        path = f"/constants/{self._constants}"
        self._constants += 1
        self.datasets[path] = np.array(array)
        return path

    # -- functions -----------------------------------------------------------------------------

    def _op(self, op: Op) -> None:
        self._graphs.ops[op.name] = op

    def _callable(self, function: Any, module: Module, where: str) -> int:
        return self._function(
            trace_callable(function, module, self._met[id(module)], where, self._sizes)
        )

    def _signature(self, name: str, function: Any) -> int:
        if not IDENTIFIER.match(name):
            raise SaveError(f"signatures: {name!r} is not an identifier")
        if isinstance(function, ConcreteFunction):
            function = RestoredFunction(name, _plain_signature(function), [function])
        saved = None
        if isinstance(function, (Function, RestoredFunction)):
            saved = with_traces(name, f"signatures: {name!r}", function)
        if saved is None:
            raise SaveError(
                f"signatures: {name!r} must be a gradtape.function that has an input_signature or "
                "has been called"
            )
        return self._function(saved)

    def _function(self, function: SavedFunction) -> int:
        key = (id(function.original), *(repr(x.arguments) for x in function.concrete))
        number = self._function_numbers.get(key)
        if number is not None:
            return number
        number = self._function_numbers[key] = len(self._functions)
        self._saved.append(function)
        record: dict[str, Any] = {
            "name": function.name,
            "parameters": encode_signature(function.signature),
            "traces": [],
        }
        if function.sizes == "seen":
            record["sizes"] = "seen"
        self._functions.append(record)
        for i, concrete in enumerate(function.concrete):
            n = len(self.texts)
            path = f"/functions/{n}"
            self.texts[path] = dump(self._graphs.function(concrete), f"function {function.name!r}")
            trace: dict[str, Any] = {"dataset": path}
            if self._golden:
                self._compare(trace, n, function, concrete, function.seen_by(i))
            record["traces"].append(trace)
        return number

    def _compare(
        self,
        trace: dict[str, Any],
        number: int,
        function: SavedFunction,
        concrete: ConcreteFunction,
        seen: Sequence[Shapes],
    ) -> None:
        """Compare a trace with the Python code, and keep samples of what that gives."""
        cases: list[dict[str, Any]] = []
        for i, sample in enumerate(sample_inputs(concrete, number, seen)):
            # the gradient of the gradient once, where it is
            order = 1 if cases else 2
            try:
                found = compared(function, concrete, sample, self._variables, self._labels, order)
                if found.problem is not None:
                    raise found.problem
            except SaveError:
                raise
            except Exception as error:  # the samples are ours, not the user's: not every one fits
                trace.setdefault("not_sampled", why(error))
                if isinstance(error, EndlessLoop):  # it takes long, and others would do the same
                    break
                continue
            if self._graphs.left_out or not (sample.stored or (not cases and sample.is_small)):
                continue
            base = f"/golden/{number}/{i}"
            for dtype, flat in packed([*sample.inputs, *found.values.values()]).items():
                self.datasets[f"{base}/{dtype}"] = flat
            cases.append(
                {
                    "case": base,
                    "inputs": [spec_record(x.shape, x.dtype) for x in sample.inputs],
                    "values": [spec_record(x.shape, x.dtype, k) for k, x in found.values.items()],
                }
            )
        if cases:
            trace["golden"] = cases
            trace.pop("not_sampled", None)

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


def _plain_signature(concrete: ConcreteFunction) -> inspect.Signature:
    args, kwargs = concrete.arguments
    positional, named = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            *(inspect.Parameter(f"arg{i}", positional) for i in range(len(args))),
            *(inspect.Parameter(name, named) for name in kwargs),
        ]
    )


def _write(path: str, contents: _Contents) -> None:
    """Write to a temporary file beside ``path``, make sure it is on disk, then put it in place."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise SaveError(f"{path}: there is no folder {folder}")
    temporary = os.path.join(folder, f".gradtape-{secrets.token_hex(8)}.h5")
    try:
        # made before HDF5 opens it: nobody else's file is overwritten, and the umask counts
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        with h5py.File(temporary, "w", libver=("v110", "v110")) as file:
            _fill(file, contents)
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o777)
        _sync(temporary)
        os.replace(temporary, path)
    except (OSError, RuntimeError, ValueError) as error:  # h5py raises any of them on a full disk
        raise SaveError(f"{path}: cannot be written ({error})") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    with contextlib.suppress(OSError):  # not every system lets a folder be synced
        _sync(folder)


def _fill(file: h5py.File, contents: _Contents) -> None:
    for name, text in (
        ("format", FORMAT),
        ("format_version", ".".join(map(str, VERSION))),
        ("manifest_sha256", text_digest(contents.manifest)),
    ):
        file.attrs[name] = np.bytes_(text)
    for path, text in {"/manifest": contents.manifest, **contents.texts}.items():
        data = text.encode()
        file.create_dataset(path, data=data, dtype=h5py.string_dtype("utf-8", len(data)))
    for path, array in contents.datasets.items():
        file.create_dataset(path, data=np.ascontiguousarray(array).reshape(array.shape))


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
