"""The next step of a save: the records of the file, with every trace compared with its Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...core.errors import EndlessLoop
from ...core.extend import (
    RULED,
    ConcreteFunction,
    Function,
    Module,
    Op,
    RestoredFunction,
    Stream,
    Variable,
    frozen_variables,
    is_frozen,
    is_unbuilt,
    ruled_weights,
)
from ...training import Optimizer
from ..errors import SaveError
from ..proofs.golden import packed, why
from ..proofs.samples import Shapes, is_light, sample_inputs
from ..records.held import absorbed
from ..records.loaded import MISSING, LoadedModule, is_ordered, reached, shadows
from ..records.loaded_optimizer import FORMULA, RATE
from ..records.manifest import (
    CaseRecord,
    FunctionRecord,
    Manifest,
    ModuleRecord,
    TraceRecord,
    VariableRecord,
)
from ..records.schema import IDENTIFIER, dump, encode_signature, is_attribute
from .collect import (
    UNCALLED,
    Collected,
    Numbers,
    Options,
    Part,
    assigned_functions,
    requirements,
)
from .compare import KernelCheck, compared
from .graphs import GraphWriter
from .modules import (
    StateWriter,
    at_in,
    check_hidden,
    config_of,
    loaded_class,
    name_in_files,
    texts_in,
    twin_of,
)
from .optimizers import formula_of, record_of, trace_rate
from .running import reads_of
from .steps import SameTrace, other_dtypes
from .traces import (
    NeedsSizes,
    SavedFunction,
    functions_of,
    is_called,
    lost_defaults,
    plain_signature,
    trace_call,
    trace_callable,
    trace_mask,
    trace_rule,
    with_traces,
)

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Encoded:
    """The records of a file.

    Attributes
    ----------
    texts
        The JSON of traces and gradient rules, by the paths of their datasets.
    arrays
        Arrays of attributes, constants and golden vectors, in their order in the file.
    left_out
        What Python holds and the file does not, by path.
    traces
        The traces of all functions.
    """

    manifest: Manifest
    texts: dict[str, str]
    arrays: dict[str, Array]
    left_out: list[str]
    traces: list[ConcreteFunction]


def encode(collected: Collected, numbers: Numbers) -> Encoded:
    """Return the records of what was collected, whose functions are traced and compared here."""
    arrays = _Arrays()
    functions = _Functions(collected, numbers, arrays)
    state = StateWriter(collected.root, numbers.reference, arrays.adder("arrays"), functions.add_op)
    records = [_module(part, state, numbers) for part in collected.parts]
    if collected.signatures and "signatures" in records[0].attributes:
        raise SaveError(
            "signatures: the module has an attribute 'signatures', which they would replace"
        )
    functions.left_out = state.left_out
    with reads_of(collected.python_parts) as reads:
        for i, part in enumerate(collected.parts):
            records[i] = functions.of_module(i, part, records[i])
        named = {name: functions.signature(name, f) for name, f in collected.signatures.items()}
    rules = functions.rules()
    records = _with_absorbed(collected, records, reads, functions, bool(named))
    left_out = state.left_out
    left_out += [f"signatures[{x!r}] ({MISSING}{why_not})" for x, why_not in collected.lost.items()]
    check_hidden(state.hidden, lambda variable: numbers.known(variable) is not None)
    known = {part.known for part in collected.parts if part.known is not None}
    manifest = Manifest(
        modules=records,
        signatures=named,
        rules=rules or (),
        functions=functions.records,
        variables=[_variable(variable, numbers) for variable in numbers.variables],
        requires=requirements(functions.graphs.ops.values(), known, functions.words),
    )
    return Encoded(manifest, functions.texts, arrays.by_path, left_out, functions.traces)


class _Arrays:
    """The arrays of a file by path; those of a group are numbered."""

    def __init__(self) -> None:
        self.by_path: dict[str, Array] = {}
        self._counts: dict[str, int] = {}

    def adder(self, group: str) -> Callable[[Array], str]:
        """Return a function that stores a copy of an array and returns its path."""
        return partial(self._add, group)

    def _add(self, group: str, array: Array) -> str:
        number = self._counts.get(group, 0)
        self._counts[group] = number + 1
        self.by_path[f"/{group}/{number}"] = np.array(array)
        return f"/{group}/{number}"


def _variable(variable: Variable, numbers: Numbers) -> VariableRecord:
    stream: Any = None
    if isinstance(variable, Stream):
        stream = "shared" if variable is Stream.shared else {"drawn": variable.drawn}
    return VariableRecord(
        dataset=numbers.places[id(variable)],
        name=variable.name,
        trainable=variable.trainable,
        shape=variable.shape,
        dtype=variable.dtype.name,
        stream=stream,
    )


# -- modules ---------------------------------------------------------------------------------------


def _module(part: Part, state: StateWriter, numbers: Numbers) -> ModuleRecord:
    """Return a module's record, without its functions."""
    module = part.module
    loaded = module if isinstance(module, LoadedModule) else None
    untraced = {} if loaded is None else dict(loaded.untraced)
    extra: dict[str, Any] = {}
    if part.known is None:
        attributes, absent = state.attributes(module)
        untraced |= absent
    else:
        attributes, extra = state.known_attributes(module, partial(twin_of, module, part.where))
    frozen: list[int] | None = None
    if is_frozen(module):
        known = (numbers.known(variable) for variable in frozen_variables(module))
        frozen = [number for number in known if number is not None]
    trained: list[Any] = []
    if isinstance(module, Optimizer):
        trained = [numbers.known(variable) for variable in module.trained]
    return ModuleRecord(
        name=name_in_files(module.name),
        known=part.known,
        class_name=type(module).__name__ if loaded is None else loaded.class_name,
        functions={},
        untraced=untraced,
        attributes=attributes,
        ordered=part.known is None and is_ordered(module),
        extra=extra or None,
        frozen=frozen,
        # else the optimizer's file is without the model
        trained=trained if trained and None not in trained else None,
    )


def _with_absorbed(
    collected: Collected,
    records: Sequence[ModuleRecord],
    reads: set[tuple[int, str]],
    functions: _Functions,
    signed: bool,
) -> list[ModuleRecord]:
    """Record which attributes graphs have read; refuse modules that could not be called."""
    own = [i for i, record in enumerate(records) if record.known is None]
    callers = [i for i in own if records[i].functions or (signed and i == 0)]
    within = reached([record.attributes for record in records], callers)
    found = list(records)
    for i in own:
        module = collected.parts[i].module
        if i not in within:
            others = bool(callers) or len(own) < len(records)
            _check_callable(collected, collected.parts[i], others)
        elif not functions.blind:
            known = absorbed(module)
            names = [x for x in found[i].attributes if x in known or (id(module), x) in reads]
            found[i] = replace(found[i], absorbed=names)
    return found


def _check_callable(collected: Collected, part: Part, others: bool) -> None:
    """Refuse a module that can be called here, but could not be called when loaded.

    If ``others`` can be called, a part without weights to train is kept for its state: a
    metric, a loss, a learning rate schedule.
    """
    module = part.module
    if module is not collected.root and others:
        unbuilt = any(map(is_unbuilt, (module, *module.submodules)))
        if not unbuilt and not any(variable.trainable for variable in module.variables):
            return
    never = not isinstance(module, LoadedModule) and not part.history.calls
    if collected.options.functions and is_called(module) and never:
        raise SaveError(
            f"{part.where}{at_in(collected.root, module)} was never called. A "
            "module that was never called has no trace, and could not be called after loading. "
            "Call it once on typical inputs and save it then; or save its variables and "
            "structure only: gradtape.save(..., functions=False)"
        )


# -- functions -------------------------------------------------------------------------------------


class _Functions:
    """The functions of a file, traced, encoded and compared one after another.

    Attributes
    ----------
    records
        Their records.
    texts
        The JSON of their traces by path.
    words
        The texts in configurations, which may name what a plugin provides.
    blind
        Whether Python code of which a trace is saved was not run, so that nobody knows its reads.
    """

    def __init__(self, collected: Collected, numbers: Numbers, arrays: _Arrays) -> None:
        self._options: Options = collected.options
        self._outermost = collected.outermost
        self._numbers = numbers
        self._arrays = arrays
        self._by_key: dict[Any, int] = {}
        self._saved: list[SavedFunction] = []  # keeps alive what is known by identity
        self._kernels = KernelCheck()
        self.graphs = GraphWriter(
            numbers.variable,
            arrays.adder("constants"),
            collected.options.custom_gradients,
            collected.rules,
        )
        self.records: list[FunctionRecord] = []
        self.texts: dict[str, str] = {}
        self.words: set[str] = set()
        self.left_out: list[str] = []
        self.blind = self._root_is_called = False

    @property
    def traces(self) -> list[ConcreteFunction]:
        """The traces of all functions."""
        return [trace for function in self._saved for trace in function.concrete]

    def add_op(self, op: Op) -> None:
        """Note an op that the file needs."""
        self.graphs.ops[op.name] = op

    def of_module(self, index: int, part: Part, record: ModuleRecord) -> ModuleRecord:
        """Return a module's record with its functions."""
        module, where, untraced = part.module, part.where, dict(record.untraced or {})
        traces = self._options.functions
        saved: list[SavedFunction] = []
        config: dict[str, Any] | None = None
        if part.known is not None:
            config = config_of(module, self.add_op, partial(self._configured, part), where)
            self.words |= texts_in(config)
            self.left_out += assigned_functions(module)
        elif traces:
            saved, names = functions_of(module, where, self.left_out)
            if isinstance(module, Optimizer):
                saved += formula_of(module, where)
                untraced.pop(RATE, None)
                if {x.name for x in saved}.issuperset(FORMULA):  # else it was lost on loading
                    record = replace(record, optimizer=record_of(module, where))
            untraced |= dict.fromkeys(names, UNCALLED)
            lost = {name: getattr(x, "reason", "") for name, x in module.functions().items()}
            untraced |= {name: MISSING + reason for name, reason in lost.items() if reason}
            told = (MISSING, UNCALLED)
            missing = [name for name, why in untraced.items() if why.startswith(told)]
            self.left_out += [f"{module.name}.{name} ({untraced[name]})" for name in missing]
        else:
            names = [*module.functions(), *(["__call__"] if is_called(module) else [])]
            names += FORMULA if isinstance(module, Optimizer) else ()
            untraced |= dict.fromkeys(names, "saved with functions=False")
        if traces and (part.known is None or index in self._outermost):
            saved += self._call_of(index, part, untraced)
        functions = {}
        for function in saved:
            if not (isinstance(module, Optimizer) and function.name in (*FORMULA, RATE)):
                _check_function_name(function.name, where, loaded_class(module))
            functions[function.name] = self._add(function, of_module=part.known is None)
        record = replace(record, functions=functions, untraced=untraced or None, config=config)
        if not traces:
            return record
        own = part.known is None
        weights = ruled_weights(module) if own else iter(vars(module).get(RULED, ()))
        return replace(record, **self._weight_rules(module, weights))

    def _call_of(self, index: int, part: Part, untraced: dict[str, str]) -> list[SavedFunction]:
        """Trace the call of a module, and how a layer inside a model changes masks."""
        module, where, sizes = part.module, part.where, self._options.sizes
        try:
            call = trace_call(module, part.history, f"{where}.__call__", sizes, self.left_out)
        except SaveError as error:
            own = part.known is None
            alone = own and isinstance(error, NeedsSizes) and not self._root_is_called
            if index == 0 or alone or part.is_rate:
                raise
            # the module above it is what will be called; say what is missing, and go on
            untraced["__call__"] = why(error)
            return []
        if call is None:
            return []
        if index == 0:
            self._root_is_called = True
        if index == 0 or part.known is not None:  # a known class makes its masks itself
            return [call]
        try:
            mask = trace_mask(module, part.history, f"{where}.compute_mask", sizes)
        except SaveError as error:
            untraced["compute_mask"] = why(error)
            mask = None
        return [call] if mask is None else [call, mask]

    def _weight_rules(
        self, module: Module, weights: Iterator[tuple[Variable, Any, Any]]
    ) -> dict[str, Any]:
        """Return the regularizers and constraints of a module's weights: numbers of both."""
        found: dict[str, Any] = {}
        for variable, *rules in weights:
            for kind, rule in zip(("regularizer", "constraint"), rules, strict=True):
                if rule is None:
                    continue
                where = f"{module.name}: the {kind} of {variable.name!r}"
                try:
                    number = self._numbers.variable(variable)
                    traced = self._add(trace_rule(rule, variable, kind == "regularizer", where))
                except SaveError as error:
                    self.left_out.append(f"{where} ({why(error)})")
                else:
                    found.setdefault(f"{kind}s", []).append((number, traced))
        return found | {"constraints_first": [*found][:1] == ["constraints"]}

    def _configured(self, part: Part, function: Any, where: str) -> int:
        """Return the number of a function in a known class's configuration."""
        if isinstance(part.module, Optimizer):  # its learning rate
            return self._add(trace_rate(function, where))
        sizes = self._options.sizes
        return self._add(trace_callable(function, part.module, part.history, where, sizes))

    def signature(self, name: str, function: Any) -> int:
        """Return the number of one of the ``signatures``."""
        if not IDENTIFIER.match(name):
            raise SaveError(f"signatures: {name!r} is not an identifier")
        if isinstance(function, ConcreteFunction):
            self.blind = True
            function = RestoredFunction(name, plain_signature(function), [function])
        saved = None
        if isinstance(function, (Function, RestoredFunction)):
            saved = with_traces(name, f"signatures: {name!r}", function)
        if saved is None:
            raise SaveError(
                f"signatures: {name!r} must be a gradtape.function that has an input_signature or "
                "has been called"
            )
        return self._add(saved)

    def rules(self) -> list[str]:
        """Encode the gradient rules that nodes refer to, and return the paths of their datasets."""
        paths: list[str] = []
        for rule, where in self.graphs.rules.kept():
            paths.append(f"/rules/{len(paths)}")
            if rule.graph is not None:
                self._kernels.check(rule.graph, where)
            self.texts[paths[-1]] = dump(self.graphs.rule(rule, where), where)
        return paths

    def _add(self, function: SavedFunction, of_module: bool = False) -> int:
        """Return the number of a function, whose traces are encoded and compared once."""
        key = (id(function.original), *(repr(x.arguments) for x in function.concrete))
        number = self._by_key.get(key)
        if number is not None:
            return number
        number = self._by_key[key] = len(self.records)
        self._saved.append(function)
        traces: list[TraceRecord] = []
        record = FunctionRecord(
            name=function.name,
            parameters=encode_signature(function.signature),
            traces=traces,
            sizes="seen" if function.sizes == "seen" else "",
            converts=function.converts,
        )
        self.left_out += lost_defaults(function, record.parameters)
        self.records.append(record)
        tables: tuple[dict[str, Any], ...] = self.texts, self._arrays.by_path
        before = [len(table) for table in tables]
        weighed: list[Any] = []  # graphs whose gradients were compared
        try:
            for i, concrete in enumerate(function.concrete):
                traces.append(self._trace(function, concrete, i, weighed, of_module))
        except SaveError:  # a file can do without it, perhaps, but nothing would use its datasets
            del self._by_key[key], self.records[number:], self._saved[number:]
            for table, count in zip(tables, before, strict=True):
                for path in list(table)[count:]:
                    del table[path]
            raise
        return number

    def _trace(
        self,
        function: SavedFunction,
        concrete: ConcreteFunction,
        i: int,
        weighed: list[Any],
        of_module: bool,
    ) -> TraceRecord:
        n = len(self.texts)
        path = f"/functions/{n}"
        where = f"function {function.name!r}"
        self._kernels.check(concrete.graph, where)
        traced = self.graphs.function(concrete)
        self.texts[path] = dump(traced, where)
        cases: list[CaseRecord] = []
        problem = ""
        if self._options.golden:
            again = traced["graph"] in weighed
            cases, problem = self._compare(n, function, concrete, function.seen_by(i), again)
            weighed += [traced["graph"]] if cases else []
        unrun = not self._options.golden or bool(problem)
        self.blind |= unrun and isinstance(function.original, Function)
        dtypes = other_dtypes(function, concrete) if of_module else []
        return TraceRecord(
            dataset=path,
            golden=cases or None,
            not_sampled=problem,
            dtypes=tuple(map(tuple, dtypes)),
        )

    def _compare(
        self,
        number: int,
        function: SavedFunction,
        concrete: ConcreteFunction,
        seen: Sequence[Shapes],
        again: bool,
    ) -> tuple[list[CaseRecord], str]:
        """Compare a trace with the Python code; return samples, or why there are none.

        Second gradients are computed once, and so are those of large variables; neither is repeated
        ``again`` for a trace of the same graph. Large variables are not run at a larger batch
        alone. The trace itself runs one sample of small ones, whatever steps it takes.
        """
        cases: list[CaseRecord] = []
        problem = ""
        inner: list[Any] = []  # sizes other than the batch's
        checked = False  # whether losses were compared
        variables = self._numbers.variables, self._numbers.labels
        for i, sample in enumerate(sample_inputs(concrete, number, seen)):
            light = is_light(concrete, sample.inputs)
            if not light and not sample.stored and inner == [x.shape[1:] for x in sample.inputs]:
                continue
            order = max((2 if light else 1) - bool(cases) - again, 0)
            inner = [x.shape[1:] for x in sample.inputs]
            try:
                if (concrete.added or concrete.masks) and not checked:
                    compared(*function.with_losses_and_masks(concrete), sample, *variables, 0)
                    checked = True
                found = compared(function, concrete, sample, *variables, order, light and not cases)
                if found.problem is not None:
                    raise found.problem
            except SaveError:
                raise
            except SameTrace:  # it would be one pass more over large variables for nothing new
                continue
            except Exception as error:  # the samples are ours, not the user's: not every one fits
                problem = problem or why(error)
                if isinstance(error, EndlessLoop):  # it takes long, and others would do the same
                    break
                continue
            if self.graphs.left_out or sum((sample.stored, sample.is_small, not cases)) < 2:
                continue
            base = f"/golden/{number}/{i}"
            for dtype, flat in packed([*sample.inputs, *found.values.values()]).items():
                self._arrays.by_path[f"{base}/{dtype}"] = flat
            cases.append(CaseRecord.of(base, sample.inputs, found.values))
        return cases, "" if cases else problem


def _check_function_name(name: str, where: str, cls: type) -> None:
    if name != "__call__" and (not is_attribute(name) or shadows(cls, name)):
        raise SaveError(
            f"{where}: a function cannot be called {name!r} in a file: every module has an "
            "attribute of that name, or it has characters other than ASCII letters, digits "
            "and '_'"
        )
