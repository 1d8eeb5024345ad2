"""``load``: a module from a file that anyone may have made."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.extend import (
    ConcreteFunction,
    Module,
    RestoredFunction,
    Variable,
    freeze,
    init_scope,
    registry,
)
from .errors import (
    DamagedFile,
    MissingOp,
    MissingPlugin,
    NewerFormat,
    NotAGradtapeFile,
    UnsafeFile,
)
from .golden import unpacked
from .graphs import GraphReader, decode_signature, read_spec
from .modules import LoadedModule, restore_attributes, restore_config
from .safe import SafeFile
from .schema import (
    FORMAT,
    IDENTIFIER,
    VERSION,
    check_attribute,
    check_dtype,
    check_shape,
    digest,
    parse,
    take,
    text_digest,
)

_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}\Z")

__all__ = ["Built", "Contents", "build", "cases_of", "load", "open_contents", "read_case"]


def load(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> Any:
    """Load a module from a file that :func:`gradtape.save` wrote.

    Nothing of the file is executed: names in it are looked up among what the installed plugins
    registered, graphs are checked step by step, and every digest is compared.

    Parameters
    ----------
    path
        The file.
    max_bytes
        The most that its arrays may take in memory together (8 GiB by default).

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
    with SafeFile(path, max_bytes) as file, init_scope():
        return build(open_contents(file)).modules[0]


class Contents:
    """The manifest of a file, and its datasets with their digests checked when read."""

    def __init__(self, file: SafeFile, manifest: Mapping[str, Any]) -> None:
        self.file = file
        self.manifest = manifest
        self.modules: list[Any] = take(manifest, "modules", list, "manifest")
        self.functions: list[Any] = take(manifest, "functions", list, "manifest")
        self.variables: list[Any] = take(manifest, "variables", list, "manifest")
        self.signatures: dict[str, Any] = take(manifest, "signatures", dict, "manifest")
        self.requires: list[Any] = take(manifest, "requires", list, "manifest")
        self._digests: dict[str, Any] = take(manifest, "digests", dict, "manifest")
        if not self.modules:
            raise DamagedFile("manifest: no modules")
        unlisted = set(file.sizes) - set(self._digests) - {"/manifest"}
        missing = set(self._digests) - set(file.sizes)
        if unlisted or missing:
            raise DamagedFile(
                f"{file.path}: the datasets are not those of the manifest "
                f"({', '.join(sorted(unlisted | missing)[:3])})"
            )

    def array(self, path: str) -> np.ndarray[Any, Any]:
        """Return a dataset of numbers whose digest is right."""
        array = self.file.array(path)
        self._check(path, digest(array))
        return array

    def text(self, path: str) -> str:
        """Return a dataset of text whose digest is right."""
        text = self.file.text(path)
        self._check(path, text_digest(text))
        return text

    def _check(self, path: str, found: str) -> None:
        if self._digests.get(path) != found:
            raise DamagedFile(f"{self.file.path}: {path} does not match its digest")


def open_contents(file: SafeFile) -> Contents:
    """Check everything in an open file, and read its manifest."""
    if file.attribute("format") != FORMAT:
        raise NotAGradtapeFile(f"{file.path}: its format is {file.attribute('format')[:40]!r}")
    # before anything else is looked at: a newer format may hold what this one forbids
    version = file.attribute("format_version")
    if not _VERSION.match(version):
        raise DamagedFile(f"{file.path}: its format version is {version[:40]!r}")
    major, minor = (int(part) for part in version.split("."))
    if major > VERSION[0]:
        raise NewerFormat(
            f"{file.path}: written in format {major}.{minor}, this gradtape reads up to "
            f"{VERSION[0]}.x; upgrade with: pip install --upgrade gradtape"
        )
    if major < 1:
        raise DamagedFile(f"{file.path}: there is no format {version}")
    file.check()
    text = file.text("/manifest")
    if text_digest(text) != file.attribute("manifest_sha256"):
        raise DamagedFile(f"{file.path}: the manifest does not match its digest")
    return Contents(file, parse(text))


class Built(NamedTuple):
    """What a file's contents became; the first module is the root."""

    modules: list[Module]
    functions: list[RestoredFunction]
    variables: list[Variable]


def build(contents: Contents) -> Built:
    """Build everything that a file holds, checking it all before returning any of it."""
    _check_requirements(contents)
    variables = [_variable(contents, record, i) for i, record in enumerate(contents.variables)]
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


def _variable(contents: Contents, record: Any, index: int) -> Variable:
    where = f"variable {index}"
    array = contents.array(take(record, "dataset", str, where))
    shape = check_shape(take(record, "shape", list, where), where, known=True)
    dtype = check_dtype(take(record, "dtype", str, where), where)
    if array.shape != shape or array.dtype != dtype:
        raise DamagedFile(f"{where} is declared {dtype}{list(shape or ())}, its dataset differs")
    name, trainable = take(record, "name", str, where), take(record, "trainable", bool, where)
    return Variable(array, trainable=trainable, name=name)


def _function(contents: Contents, reader: GraphReader, record: Any, index: int) -> RestoredFunction:
    name = take(record, "name", str, f"function {index}")
    where = f"function {name[:80]!r}"
    signature = decode_signature(take(record, "parameters", list, where), where)
    concrete: list[ConcreteFunction] = []
    for trace in take(record, "traces", list, where):
        path = take(trace, "dataset", str, where)
        concrete.append(reader.function(parse(contents.text(path)), f"{where} ({path})"))
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


def cases_of(record: Any) -> list[Any]:
    """Return the golden cases of a function's record, for all of its traces."""
    found: list[Any] = []
    for trace in take(record, "traces", list, "function"):
        if type(trace) is dict and "golden" in trace:
            found += take(trace, "golden", list, "golden")
    return found


def read_case(contents: Contents, case: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs of a golden case, and its outputs and gradients by name."""
    base = take(case, "case", str, "golden")
    given = [read_spec(record, "golden") for record in take(case, "inputs", list, "golden")]
    made = [read_spec(record, "golden") for record in take(case, "values", list, "golden")]
    if any(spec.shape is None or None in spec.shape for spec in (*given, *made)):
        raise DamagedFile(f"golden: {base[:80]} has a shape that is not known")
    names = {spec.dtype.name for spec in (*given, *made)}
    flat = {name: contents.array(f"{base}/{name}") for name in sorted(names)}
    try:
        arrays = unpacked([*given, *made], flat)
    except ValueError as error:
        raise DamagedFile(f"golden: {base[:80]}: {error}") from None
    values = {str(spec.name): x for spec, x in zip(made, arrays[len(given) :], strict=True)}
    return arrays[: len(given)], values
