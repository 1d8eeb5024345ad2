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
    hinted_arguments,
    init_scope,
    registry,
    to_numpy,
    warn_user,
)
from ...training import Optimizer
from ..container.limits import DTYPES, MAX_PATHS
from ..container.storage import open_file
from ..errors import DamagedFile, MissingOp, MissingPlugin, UnsafeFile, guarded, printable
from ..proofs.golden import frozen_state
from ..records.held import absorb, hold
from ..records.loaded import MISSING, LoadedModule, check_name, reached
from ..records.loaded_optimizer import FORMULA, RATE, FormulaChecks, LoadedOptimizer
from ..records.manifest import FunctionRecord, Manifest, ModuleRecord, VariableRecord
from ..records.schema import (
    COUNTS,
    IDENTIFIER,
    at,
    check_steps,
    check_stream,
    decode_signature,
    rule_fits_weight,
)
from .contents import Contents, check_requirements, open_contents, read_case
from .graphs import GraphReader
from .modules import MissingFunction, StateReader, check_restored, fixed, restore_config

# How many graphs of regularizers and constraints are compared with weights.
_MOST_CHECKS = 2**18


@hinted_arguments(
    {
        "compile": "leave it out: gradtape.training.fit takes optimizer, loss and metrics",
        "custom_objects": (
            "leave it out: the file holds your classes as graphs. To get a class of your own back, "
            "give it a name in files, by saved_as=... and gradtape.plugin.saved_classes"
        ),
        "map_location": "leave it out: variables are created on the current gradtape.backend(...)",
        "safe_mode": "leave it out: no code in a file is executed",
        "weights_only": "leave it out: no code in a file is executed",
    }
)
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
    manifest = contents.manifest
    check_requirements(manifest.requires, allow_missing)
    variables = _variables(contents, lazy)
    # every dataset is compared with its digest, those that only verification reads too
    for case in manifest.cases():
        read_case(contents, case)
    reader = GraphReader(registry(), variables, contents.array)
    reader.read_rules([contents.json(path) for path in manifest.rules], allow_missing)
    functions = [_function(contents, reader, x, allow_missing) for x in manifest.functions]
    _warn_of_rules(reader.replaced)

    def function(number: int) -> RestoredFunction:
        return at(functions, number, "function", "manifest")

    modules: list[Module] = []
    for i, record in enumerate(manifest.modules):
        modules.append(_module(record, function, f"module {i}", allow_missing))
    state = StateReader(variables, modules, contents.array, allow_missing)
    rules = _RuleChecks()
    for i, (module, record) in enumerate(zip(modules, manifest.modules, strict=True)):
        where = f"module {i}"
        state.restore(module, record, where)
        if isinstance(module, LoadedModule):
            _set_functions(module, record.functions, function, where)
        if weights := _ruled(record, variables, function, where, rules):
            vars(module)[RULED] = weights
        if record.frozen is not None:
            freeze(module, _chosen(record.frozen, variables, where))
    for variable, saved in zip(variables, manifest.variables, strict=True):
        if saved.stream is None:  # one may train although its module is frozen
            variable.trainable = saved.trainable
    checks, beside = FormulaChecks(), frozenset([variable.id for variable in variables])
    for i, (module, record) in enumerate(zip(modules, manifest.modules, strict=True)):
        if isinstance(module, LoadedOptimizer):
            _check_formula(checks, module, record, f"module {i}")
        if isinstance(module, Optimizer):  # which may hold another one
            _check_optimizer(module, record, variables, beside, f"module {i}")
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
    if manifest.signatures:
        if "signatures" in vars(root):
            raise DamagedFile("signatures: the root has an attribute of that name")
        vars(root)["signatures"] = {
            _identifier(name, "signatures"): function(number)
            for name, number in manifest.signatures.items()
        }
    _absorb(modules, manifest)
    _check_paths(root)
    return Built(modules, functions, variables)


def _check_formula(
    checks: FormulaChecks, optimizer: LoadedOptimizer, record: ModuleRecord, where: str
) -> None:
    try:
        checks.check(optimizer, None if record.optimizer is None else record.optimizer.excluded)
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedFile(f"{where}: not an optimizer: {error}") from None


def _check_optimizer(
    optimizer: Optimizer,
    record: ModuleRecord,
    variables: Sequence[Variable],
    beside: frozenset[int],
    where: str,
) -> None:
    counts, given = optimizer.step_counts, record.attributes.get(COUNTS)
    if (
        type(counts) not in (list, tuple)
        or not all(isinstance(x, Variable) for x in counts)
        or (not counts and given not in (None, {"list": []}, {"tuple": []}))  # and was left out
    ):
        raise DamagedFile(f"{where}: {COUNTS} is not a list of variables")
    trained = record.trained or ()
    known = [trained, *(getattr(optimizer, slot) for slot in optimizer.slots)]
    most = max((len(x) for x in known if isinstance(x, (list, tuple))), default=0)
    if most < len(counts) and (trained or optimizer.slots):  # else their number is not known
        raise DamagedFile(
            f"{where}: {COUNTS} has {len(counts)} elements for {most} trained variables"
        )
    for counter in {optimizer.iterations, *counts}:
        check_steps(to_numpy(counter.array), where)
    chosen = _chosen(trained, variables, where)
    _check_states(optimizer, chosen, where)
    if record.trained is not None:
        try:
            optimizer.claim(chosen, beside)
        except ValueError as error:
            raise DamagedFile(f"{where}: {error}") from None


def _check_states(optimizer: Optimizer, trained: Sequence[Variable], where: str) -> None:
    """Refuse states that are something else too: a step would write both into one variable."""
    lists = [getattr(optimizer, slot) for slot in optimizer.slots]
    held = [id(x) for given in lists if type(given) is list for x in given]
    states = set(held)
    rate = getattr(optimizer, "learning_rate", None)
    others = {id(x) for x in (*trained, optimizer.iterations, *optimizer.step_counts, rate)}
    if len(states) < len(held) or not states.isdisjoint(others):
        raise DamagedFile(f"{where}: a variable is the state of several, or also something else")


class _RuleChecks:
    """Checks which functions fit which weights; many weights may share a function."""

    def __init__(self) -> None:
        self._known: dict[Any, bool] = {}
        self._left = _MOST_CHECKS

    def fits(self, rule: RestoredFunction, variable: Variable, regularizer: bool) -> bool:
        key = id(rule), variable.shape, variable.dtype.name, regularizer
        if key not in self._known:
            self._left -= len(rule.concrete_functions)
            if self._left < 0:
                raise UnsafeFile("regularizers and constraints have too many graphs and weights")
            self._known[key] = rule_fits_weight(rule.concrete_functions, variable, regularizer)
        return self._known[key]


def _ruled(
    record: ModuleRecord,
    variables: Sequence[Variable],
    function: Any,
    where: str,
    checks: _RuleChecks,
) -> list[tuple[Variable, Any, Any]]:
    """Return a module's weights with their regularizers and constraints."""
    found: dict[Variable, list[Any]] = {}
    for place, kind in enumerate(("regularizers", "constraints")):
        for number, rule_number in getattr(record, kind) or ():
            variable = at(variables, number, "variable", where)
            rule = found.setdefault(variable, [None, None])[place] = function(rule_number)
            fits = checks.fits(rule, variable, kind == "regularizers")
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
        formula = isinstance(module, LoadedOptimizer) and name in (*FORMULA, RATE)
        if name != "__call__" and not formula:
            check_name(name, type(module), where)
        vars(module)[name] = function(number)


def _absorb(modules: Sequence[Module], manifest: Manifest) -> None:
    """Make the attributes that graphs have read read-only; all, if the file does not list them."""
    records = manifest.modules
    callers = [i for i, x in enumerate(records) if x.known is None and x.functions]
    within = reached(
        [x.attributes for x in records], callers + ([0] if manifest.signatures else [])
    )
    for i, (module, record) in enumerate(zip(modules, records, strict=True)):
        if not isinstance(module, LoadedModule):
            continue
        names = list(record.attributes)
        if record.absorbed is not None:
            listed = {x for x in record.absorbed if type(x) is str}
            names = [name for name in names if name in listed]
        elif i not in within:
            continue
        absorb(module, names)
        for name in names:
            fixed(vars(module)[name])
    hold(modules)


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
    records, found = contents.manifest.variables, list[Any]()
    contents.check_variables()
    for record in records if lazy else ():
        pending = contents.pending(record.dataset)
        found.append(Pending(pending, record.shape, DTYPES[record.dtype]))
    if not lazy:
        arrays = contents.arrays([record.dataset for record in records])
        found = [arrays.pop(record.dataset) for record in records]
    return [
        _variable(record, array, i)
        for i, (array, record) in enumerate(zip(found, records, strict=True))
    ]


def _variable(record: VariableRecord, array: Any, number: int) -> Variable:
    if record.stream is None:
        return Variable.holding(array, trainable=record.trainable, name=record.name)
    where = f"variable {number}"
    if array.shape != (2,) or array.dtype != np.int64 or record.trainable:
        raise DamagedFile(f"{where} is not a random stream")
    if isinstance(array, Pending):
        array = array.read()
    check_stream(array, where)
    if record.stream == "shared":
        return Stream.of_process()
    return Stream.restored(array, record.name, record.stream["drawn"])


@contextmanager
def streams_as_saved(contents: Contents, built: Built) -> Iterator[None]:
    """Set this process's shared stream to the state in the file, for a block."""
    with frozen_state(built.variables):
        for variable, record in zip(built.variables, contents.manifest.variables, strict=True):
            if record.stream == "shared":
                variable.assign(contents.array(record.dataset, again=True))
        yield


def _function(
    contents: Contents, reader: GraphReader, record: FunctionRecord, allow_missing: bool
) -> RestoredFunction:
    where = f"function {record.name[:80]!r}"
    signature = decode_signature(record.parameters, where)
    concrete: list[ConcreteFunction] = []
    missing = ""
    for trace in record.traces:
        try:
            found = reader.function(contents.json(trace.dataset), f"{where} ({trace.dataset[:80]})")
        except MissingOp as error:
            if not allow_missing:
                raise
            missing = str(error)
            continue
        for names in trace.dtypes:
            if len(names) != len(found.specs):
                raise DamagedFile(f"{where}: not the dtypes of its arguments: {str(names)[:80]}")
        found.also = trace.dtypes
        concrete.append(found)
    kind = MissingFunction if missing else RestoredFunction
    function = kind(record.name, signature, concrete, record.sizes, record.converts)
    if isinstance(function, MissingFunction):
        function.reason = missing
    return function


def _module(record: ModuleRecord, function: Any, where: str, allow_missing: bool) -> Module:
    name = _identifier(record.name, where)
    if record.known is None:
        untraced = record.untraced or {}
        reasons = {printable(key): printable(why, 1_000) for key, why in untraced.items()}
        given = name, record.class_name, reasons, record.ordered
        if record.optimizer is not None:
            return LoadedOptimizer(*given, record.optimizer.elementwise)
        return LoadedModule(*given)
    cls = registry().modules.get(record.known)
    try:
        if cls is None:
            raise MissingPlugin(
                f"{where}: no installed plugin provides the class {record.known[:80]!r}"
            )
        if record.config is None:
            raise DamagedFile(f"{where}: 'config' is missing")
        module = restore_config(cls, record.config, function, where)
    except (MissingPlugin, MissingOp) as error:
        if not allow_missing:
            raise
        reason = {"__call__": MISSING + str(error)}
        return LoadedModule(name, record.class_name, reason, ordered=True)
    module._name = name
    return module


def _chosen(numbers: Sequence[int], variables: Sequence[Variable], where: str) -> list[Variable]:
    """Return variables by their numbers."""
    return [at(variables, number, "variable", where) for number in numbers]


def _identifier(name: str, where: str) -> str:
    if not IDENTIFIER.match(name):
        raise UnsafeFile(f"{where}: {name[:80]!r} is not an identifier")
    return name
