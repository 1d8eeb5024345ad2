"""``load``: a module from a file that anyone may have made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.extend import (
    ConcreteFunction,
    Module,
    Pending,
    RestoredFunction,
    Variable,
    freeze,
    init_scope,
    registry,
)
from ..container.file import SafeFile
from ..errors import DamagedFile, MissingOp, MissingPlugin, UnsafeFile, guarded
from ..records.loaded import LoadedModule
from ..records.schema import IDENTIFIER, check_attribute, check_dtype, check_shape, take
from ..records.specs import decode_signature
from .contents import Contents, cases_of, open_contents, read_case
from .graphs import GraphReader
from .modules import restore_attributes, restore_config

__all__ = ["Built", "build", "load"]


def load(path: str | os.PathLike[str], *, max_bytes: int | None = None, lazy: bool = False) -> Any:
    """Load a module from a file that :func:`gradtape.save` wrote.

    Nothing of the file is executed: names in it are looked up among what the installed plugins
    registered, graphs are checked step by step, and every digest is compared.

    Parameters
    ----------
    path
        The file.
    max_bytes
        The most that its arrays may take in memory together (8 GiB by default).
    lazy
        Read each variable when its value is first asked for, and compare its digest then. The file
        stays open until the last is read.

    Returns
    -------
    Module
        Classes that a plugin provides (layers, optimizers) come back as themselves; another class
        comes back as a module with the same tree, variables and functions. Variables are made on
        the current backend (see :func:`gradtape.backend`).

    Raises
    ------
    FileMissing, NotAGradtapeFile, NewerFormat, DamagedFile, UnsafeFile, MissingPlugin, MissingOp
        All of them are :class:`gradtape.saving.LoadError`.

    Examples
    --------
    >>> import os, tempfile
    >>> model = gt.Module("settings")
    >>> model.rate = gt.Variable(0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "settings.h5")
    ...     gt.save(model, path)
    ...     rate = gt.load(path).rate.item()
    >>> rate
    0.5
    """
    with guarded(path), SafeFile(path, max_bytes, keep_open=lazy) as file, init_scope():
        return build(open_contents(file), lazy).modules[0]


class Built(NamedTuple):
    """What a file's contents became; the first module is the root."""

    modules: list[Module]
    functions: list[RestoredFunction]
    variables: list[Variable]


def build(contents: Contents, lazy: bool = False) -> Built:
    """Build everything that a file holds, checking it all before returning any of it."""
    _check_requirements(contents)
    variables = _variables(contents, lazy)
    # every dataset is compared with its digest, those that only verification reads too
    for record in contents.functions:
        for case in cases_of(record):
            read_case(contents, case)
    reader = GraphReader(registry(), variables, contents.array)
    functions = [
        _function(contents, reader, record, i) for i, record in enumerate(contents.functions)
    ]

    def function(number: int) -> RestoredFunction:
        if type(number) is not int or not 0 <= number < len(functions):
            raise DamagedFile(f"manifest: no function {number!r}")
        return functions[number]

    modules: list[Module] = []
    for i, record in enumerate(contents.modules):
        modules.append(_module(record, function, f"module {i}"))
    for i, (module, record) in enumerate(zip(modules, contents.modules, strict=True)):
        where = f"module {i}"
        attributes = take(record, "attributes", dict, where)
        restore_attributes(module, attributes, variables, modules, where)
        if type(module) is LoadedModule:
            for name, number in take(record, "functions", dict, where).items():
                if name != "__call__":
                    check_attribute(name, where)
                vars(module)[name] = function(number)
        if "frozen" in record:
            _freeze(module, take(record, "frozen", list, where), variables, where)
    contents.check_uses()
    root = modules[0]
    if contents.signatures:
        if "signatures" in vars(root):
            raise DamagedFile("signatures: the root has an attribute of that name")
        vars(root)["signatures"] = {
            _identifier(name, "signatures"): function(number)
            for name, number in contents.signatures.items()
        }
    return Built(modules, functions, variables)


def _check_requirements(contents: Contents) -> None:
    known = registry()
    for record in contents.requires:
        name = take(record, "plugin", str, "requires")
        distribution = take(record, "distribution", str, "requires")
        version = take(record, "version", str, "requires")
        wanted_ops = [str(op) for op in take(record, "ops", list, "requires")]
        missing = [op for op in wanted_ops if op not in known.ops]
        classes = [str(cls) for cls in take(record, "modules", list, "requires")]
        missing_classes = [cls for cls in classes if cls not in known.modules]
        if not missing and not missing_classes:
            continue
        label = f"{distribution} {version}".strip() or f"the plugin {name!r}"
        here = next((info for info in known.plugins if info.name == name), None)
        if here is None or here.problem:
            state = f" (not in use here: {here.problem})" if here else ""
            install = f"; install it with: pip install {distribution}" if distribution else ""
            raise MissingPlugin(
                f"the file needs plugin {name!r} of {label} for "
                f"{', '.join((missing + missing_classes)[:5])}{install}{state}"
            )
        raise MissingOp(
            f"plugin {name!r} is here in version {here.version}, but does not provide "
            f"{', '.join((missing + missing_classes)[:5])}; the file was saved with {label}"
        )


def _variables(contents: Contents, lazy: bool) -> list[Variable]:
    """Return all variables, whose arrays are read together, or each when it is first used."""
    held: list[Any] = []
    for i, record in enumerate(contents.variables):
        where = f"variable {i}"
        shape = check_shape(take(record, "shape", list, where), where, known=True) or ()
        dtype = check_dtype(take(record, "dtype", str, where), where)
        path = take(record, "dataset", str, where)
        if contents.declared(path) != (dtype.name, shape):
            raise DamagedFile(f"{where} is declared {dtype}{list(shape)}, its dataset differs")
        if lazy:
            held.append(Pending(contents.pending(path), shape, dtype))
    if not lazy:
        paths = [record["dataset"] for record in contents.variables]
        arrays = contents.arrays(paths)
        held = [arrays.pop(path) for path in paths]
    return [
        Variable.holding(
            array,
            trainable=take(record, "trainable", bool, f"variable {i}"),
            name=take(record, "name", str, f"variable {i}"),
        )
        for i, (array, record) in enumerate(zip(held, contents.variables, strict=True))
    ]


def _function(contents: Contents, reader: GraphReader, record: Any, index: int) -> RestoredFunction:
    name = take(record, "name", str, f"function {index}")
    where = f"function {name[:80]!r}"
    signature = decode_signature(take(record, "parameters", list, where), where)
    concrete: list[ConcreteFunction] = []
    for trace in take(record, "traces", list, where):
        path = take(trace, "dataset", str, where)
        concrete.append(reader.function(contents.json(path), f"{where} ({path[:80]})"))
    sizes = take(record, "sizes", str, where) if "sizes" in record else ""
    return RestoredFunction(name, signature, concrete, sizes)


def _module(record: Any, function: Any, where: str) -> Module:
    class_name = take(record, "class", (str, type(None)), where)
    name = _identifier(take(record, "name", str, where), where)
    shown = take(record, "class_name", str, where)
    if class_name is None:
        untraced = take(record, "untraced", dict, where) if "untraced" in record else {}
        ordered = "ordered" in record and take(record, "ordered", bool, where)
        return LoadedModule(name, shown, {str(k): str(v) for k, v in untraced.items()}, ordered)
    cls = registry().modules.get(class_name)
    if cls is None:
        raise MissingPlugin(f"{where}: no installed plugin provides the class {class_name[:80]!r}")
    module = restore_config(cls, take(record, "config", dict, where), function, where)
    module._name = name
    return module


def _freeze(module: Module, numbers: list[Any], variables: Sequence[Variable], where: str) -> None:
    """Freeze a module as it was when it was saved."""
    for number in numbers:
        if type(number) is not int or not 0 <= number < len(variables):
            raise DamagedFile(f"{where}: no variable {str(number)[:40]}")
    freeze(module, [variables[number] for number in numbers])


def _identifier(name: str, where: str) -> str:
    if not IDENTIFIER.match(name):
        raise UnsafeFile(f"{where}: {name[:80]!r} is no name")
    return name
