"""``load``: a module from an untrusted file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import (
    RULED,
    ConcreteFunction,
    Module,
    Pending,
    RestoredFunction,
    Stream,
    Variable,
    freeze,
    init_scope,
    registry,
    to_numpy,
    warn_user,
)
from ...training import Optimizer
from ..container.limits import MAX_PATHS
from ..container.storage import open_file
from ..errors import DamagedFile, MissingOp, MissingPlugin, UnsafeFile, guarded, printable
from ..proofs.golden import frozen_state
from ..records.loaded import MISSING, LoadedModule, absorb, check_name, reached
from ..records.schema import (
    COUNTS,
    IDENTIFIER,
    at,
    check_dtype,
    check_shape,
    check_steps,
    check_stream,
    take,
    take_label,
)
from ..records.specs import decode_signature, rule_fits_weight
from .contents import Contents, cases_of, check_requirements, open_contents, read_case
from .graphs import GraphReader
from .modules import MissingFunction, StateReader, check_restored, fixed, restore_config


def load(
    path: str | os.PathLike[str],
    *,
    max_bytes: int | None = None,
    lazy: bool = False,
    allow_missing: bool = False,
) -> Any:
    """Load a module from a file that :func:`gradtape.save` wrote.

    Nothing in the file is executed. Names in it are looked up among what the installed plugins
    registered, graphs are checked step by step, and every digest is compared.

    Parameters
    ----------
    path
        The file, in HDF5 or in the container of a plugin: the one that recognises it.
    max_bytes
        The maximum memory of its arrays together (8 GiB by default).
    lazy
        Read each variable when its value is first needed, and compare its digest then. The file
        stays open until the last one is read.
    allow_missing
        If plugins are missing, load what does not need them. A function with a missing op raises
        when it is called, and a module of a missing class loads with only its variables. False by
        default.

    Returns
    -------
    Module
        Classes that a plugin provides (layers, optimizers) are restored. Any other class loads as a
        module with the same tree, variables and functions. Its attributes that Python code read
        during tracing are read-only: the graphs contain their values. Variables are created on the
        current backend (see :func:`gradtape.backend`).

    Raises
    ------
    FileMissing, NotAGradtapeFile, NewerFormat, DamagedFile, UnsafeFile, MissingPlugin, MissingOp
        All of them are :class:`gradtape.saving.LoadError`.

    Warns
    -----
    UserWarning
        If a plugin that the file needs is installed in another version, or one of its classes makes
        variables that the file lacks.

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
    with guarded(path), open_file(path, max_bytes, keep_open=lazy) as file, init_scope():
        return build(open_contents(file), lazy, allow_missing).modules[0]


class Built(NamedTuple):
    """The objects built from a file's contents; the first module is the root."""

    modules: list[Module]
    functions: list[RestoredFunction]
    variables: list[Variable]


def build(contents: Contents, lazy: bool = False, allow_missing: bool = False) -> Built:
    """Build everything in a file, checking all of it before returning any of it."""
    check_requirements(contents.requires, allow_missing)
    variables = _variables(contents, lazy)
    # every dataset is compared with its digest, those that only verification reads too
    for record in contents.functions:
        for case in cases_of(record):
            read_case(contents, case)
    reader = GraphReader(registry(), variables, contents.array)
    reader.read_rules(
        [contents.json(take(record, "dataset", str, "rules")) for record in contents.rules],
        allow_missing,
    )
    functions = [
        _function(contents, reader, record, i, allow_missing)
        for i, record in enumerate(contents.functions)
    ]
    _warn_of_rules(reader.replaced)

    def function(number: int) -> RestoredFunction:
        return at(functions, number, "function", "manifest")

    modules: list[Module] = []
    for i, record in enumerate(contents.modules):
        modules.append(_module(record, function, f"module {i}", allow_missing))
    state = StateReader(variables, modules, contents.array, allow_missing)
    for i, (module, record) in enumerate(zip(modules, contents.modules, strict=True)):
        where = f"module {i}"
        state.restore(module, record, where)
        if type(module) is LoadedModule:
            _set_functions(module, take(record, "functions", dict, where), function, where)
        if weights := _ruled(record, variables, function, where):
            vars(module)[RULED] = weights
        if "frozen" in record:
            freeze(module, _chosen(take(record, "frozen", list, where), variables, where))
        if isinstance(module, Optimizer):
            _check_optimizer(module, record, variables, where)
    if state.changed:
        warn_user(
            f"load: {'; '.join(state.changed[:5])}. The class has changed since, and what the file "
            "lacks keeps its initial value; after a rename, load with the old name and "
            "save again",
            UserWarning,
        )
    if not allow_missing:  # what is missing fits nowhere, and has not used its constants
        check_restored(modules)
        contents.check_uses()
    root = modules[0]
    if contents.signatures:
        if "signatures" in vars(root):
            raise DamagedFile("signatures: the root has an attribute of that name")
        vars(root)["signatures"] = {
            _identifier(name, "signatures"): function(number)
            for name, number in contents.signatures.items()
        }
    _absorb(modules, contents)
    _check_paths(root)
    return Built(modules, functions, variables)


def _check_optimizer(
    optimizer: Optimizer, record: Any, variables: Sequence[Variable], where: str
) -> None:
    counts, given = optimizer.step_counts, record["attributes"].get(COUNTS)
    if (
        type(counts) not in (list, tuple)
        or not all(isinstance(x, Variable) for x in counts)
        or (not counts and given not in (None, {"list": []}, {"tuple": []}))  # and was left out
    ):
        raise DamagedFile(f"{where}: {COUNTS} is not a list of variables")
    trained = take(record, "trained", list, where) if "trained" in record else ()
    known = [trained, *(getattr(optimizer, slot) for slot in optimizer.slots)]
    most = max((len(x) for x in known if isinstance(x, (list, tuple))), default=0)
    if most < len(counts) and (trained or optimizer.slots):  # else their number is not known
        raise DamagedFile(
            f"{where}: {COUNTS} has {len(counts)} elements for {most} trained variables"
        )
    for counter in {optimizer.iterations, *counts}:
        check_steps(to_numpy(counter.array), where)
    if "trained" in record:
        try:
            chosen = _chosen(take(record, "trained", list, where), variables, where)
            optimizer.claim(chosen, beside=variables)
        except ValueError as error:
            raise DamagedFile(f"{where}: {error}") from None


def _ruled(
    record: Any, variables: Sequence[Variable], function: Any, where: str
) -> list[tuple[Variable, Any, Any]]:
    """Return a module's weights with their regularizers and constraints."""
    found: dict[Variable, list[Any]] = {}
    for place, kind in enumerate(("regularizers", "constraints")):
        for pair in take(record, kind, list, where) if kind in record else ():
            if type(pair) is not list or len(pair) != 2:
                raise DamagedFile(f"{where}: {kind}: not a variable and a function: {pair!r}"[:200])
            variable = at(variables, pair[0], "variable", where)
            rule = found.setdefault(variable, [None, None])[place] = function(pair[1])
            fits = rule_fits_weight(rule.concrete_functions, variable, kind == "regularizers")
            if not fits and not isinstance(rule, MissingFunction):
                raise DamagedFile(
                    f"{where}: {kind}: function {rule.name[:80]!r} does not fit the variable "
                    f"{variable.name!r}"
                )
    return [(variable, *rules) for variable, rules in found.items()]


def _check_paths(root: Module) -> None:
    """Limit the lengths of paths, which all code that inspects the module repeats."""
    length = 0
    for path, _ in root.named_leaves():
        length += len(path)
        if length > MAX_PATHS:
            raise UnsafeFile("the paths of its modules and variables are too long together")


def _set_functions(
    module: LoadedModule, numbers: dict[str, Any], function: Any, where: str
) -> None:
    for name, number in numbers.items():
        if name != "__call__":
            check_name(name, LoadedModule, where)
        vars(module)[name] = function(number)


def _absorb(modules: Sequence[Module], contents: Contents) -> None:
    """Make the attributes that graphs have read read-only; all, if the file does not list them."""
    records = contents.modules
    callers = [i for i, x in enumerate(records) if x.get("class") is None and x["functions"]]
    within = reached(records, callers + ([0] if contents.signatures else []))
    for i, (module, record) in enumerate(zip(modules, records, strict=True)):
        if type(module) is not LoadedModule:
            continue
        names = [str(x) for x in take(record, "attributes", dict, f"module {i}")]
        if "absorbed" in record:
            told = {x for x in take(record, "absorbed", list, f"module {i}") if type(x) is str}
            names = [name for name in names if name in told]
        elif i not in within:
            continue
        absorb(module, names)
        for name in names:
            fixed(vars(module)[name])


def _warn_of_rules(replaced: Mapping[str, str]) -> None:
    """Warn that gradients differ from those of the process that saved the file."""
    if replaced:
        (op, who), *_ = replaced.items()
        warn_user(
            "load: this process replaced gradient rules that the file's functions use (of "
            f"{', '.join(sorted(replaced)[:5])}; that of {op!r} by {who}): their gradients differ "
            "from those where the file was saved",
            UserWarning,
        )


def _variables(contents: Contents, lazy: bool) -> list[Variable]:
    """Return all variables, with arrays read together, or each at its first use."""
    held: list[Any] = []
    for i, record in enumerate(contents.variables):
        where = f"variable {i}"
        shape = check_shape(take(record, "shape", list, where), where, known=True) or ()
        dtype = check_dtype(take(record, "dtype", str, where), where)
        path = take(record, "dataset", str, where)
        if contents.declared(path) != (record["dtype"], shape):
            raise DamagedFile(f"{where} is declared {dtype}{list(shape)}, its dataset differs")
        if lazy:
            held.append(Pending(contents.pending(path), shape, dtype))
    if not lazy:
        paths = [record["dataset"] for record in contents.variables]
        arrays = contents.arrays(paths)
        held = [arrays.pop(path) for path in paths]
    return [
        _variable(record, array, f"variable {i}")
        for i, (array, record) in enumerate(zip(held, contents.variables, strict=True))
    ]


def _variable(record: Any, array: Any, where: str) -> Variable:
    name, trainable = take(record, "name", str, where), take(record, "trainable", bool, where)
    if "stream" not in record:
        return Variable.holding(array, trainable=trainable, name=name)
    stream = take(record, "stream", (str, dict), where)
    if array.shape != (2,) or array.dtype != np.int64 or trainable:
        raise DamagedFile(f"{where} is not a random stream")
    if isinstance(array, Pending):
        array = array.read()
    check_stream(array, where)
    if stream == "shared":
        return Stream.of_process()
    drawn = take(stream, "drawn", (int, type(None)), where)
    if drawn is not None and not 0 <= drawn < 2**63:
        raise DamagedFile(f"{where}: no seed {str(drawn)[:40]}")
    return Stream.restored(array, name, drawn)


@contextmanager
def streams_as_saved(contents: Contents, built: Built) -> Iterator[None]:
    """Set this process's shared stream to the state in the file, for a block."""
    with frozen_state(built.variables):
        for variable, record in zip(built.variables, contents.variables, strict=True):
            if record.get("stream") == "shared":
                variable.assign(contents.array(record["dataset"], again=True))
        yield


def _function(
    contents: Contents, reader: GraphReader, record: Any, index: int, allow_missing: bool
) -> RestoredFunction:
    name = take_label(record, "name", f"function {index}")
    where = f"function {name[:80]!r}"
    signature = decode_signature(take(record, "parameters", list, where), where)
    concrete: list[ConcreteFunction] = []
    missing = ""
    for trace in take(record, "traces", list, where):
        path = take(trace, "dataset", str, where)
        try:
            concrete.append(reader.function(contents.json(path), f"{where} ({path[:80]})"))
            if "dtypes" in trace:
                concrete[-1].also = _dtypes(take(trace, "dtypes", list, where), concrete[-1], where)
        except MissingOp as error:
            if not allow_missing:
                raise
            missing = str(error)
    sizes = take(record, "sizes", str, where) if "sizes" in record else ""
    converts = "converts" in record and take(record, "converts", bool, where)
    kind = MissingFunction if missing else RestoredFunction
    function = kind(name, signature, concrete, sizes, converts)
    if isinstance(function, MissingFunction):
        function.reason = missing
    return function


def _dtypes(listed: list[Any], concrete: ConcreteFunction, where: str) -> tuple[Any, ...]:
    """Return the other dtypes of arguments that a trace accepts."""
    if len(listed) > 64:
        raise DamagedFile(f"{where}: {len(listed)} kinds of dtypes for one trace")
    for names in listed:
        if type(names) is not list or len(names) != len(concrete.specs):
            raise DamagedFile(f"{where}: not the dtypes of its arguments: {str(names)[:80]}")
    return tuple(tuple(check_dtype(name, where).name for name in names) for names in listed)


def _module(record: Any, function: Any, where: str, allow_missing: bool) -> Module:
    class_name = take(record, "class", (str, type(None)), where)
    name = _identifier(take(record, "name", str, where), where)
    shown = take_label(record, "class_name", where)
    if class_name is None:
        untraced = take(record, "untraced", dict, where) if "untraced" in record else {}
        ordered = "ordered" in record and take(record, "ordered", bool, where)
        reasons = {printable(key): printable(why, 1_000) for key, why in untraced.items()}
        return LoadedModule(name, shown, reasons, ordered)
    cls = registry().modules.get(class_name)
    try:
        if cls is None:
            raise MissingPlugin(
                f"{where}: no installed plugin provides the class {class_name[:80]!r}"
            )
        module = restore_config(cls, take(record, "config", dict, where), function, where)
    except (MissingPlugin, MissingOp) as error:
        if not allow_missing:
            raise
        return LoadedModule(name, shown, {"__call__": MISSING + str(error)}, ordered=True)
    module._name = name
    return module


def _chosen(numbers: list[Any], variables: Sequence[Variable], where: str) -> list[Variable]:
    """Return variables by their numbers, each once."""
    found = [at(variables, number, "variable", where) for number in numbers]
    if len(set(numbers)) < len(numbers):
        raise DamagedFile(f"{where}: a variable is repeated")
    return found


def _identifier(name: str, where: str) -> str:
    if not IDENTIFIER.match(name):
        raise UnsafeFile(f"{where}: {name[:80]!r} is not an identifier")
    return name
