"""All contents of a file, created before the file is touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    SharedRule,
    StoredRule,
    Stream,
    Variable,
    call_replaced,
    frozen_variables,
    is_frozen,
    is_unbuilt,
    registry,
    ruled_weights,
    to_numpy,
)
from ...training import Optimizer
from ..errors import SaveError
from ..proofs.golden import packed, why
from ..proofs.samples import Shapes, is_light, sample_inputs
from ..records.loaded import (
    MISSING,
    LoadedModule,
    absorbed,
    is_ordered,
    reached,
    shadows,
    signatures_of,
)
from ..records.schema import (
    IDENTIFIER,
    MAX_TOKENS,
    dump,
    is_attribute,
    tokens,
    variable_label,
)
from ..records.specs import encode_signature, spec_record
from .compare import KernelCheck, compared, requirements
from .graphs import UNROLLED, GraphWriter, op_nodes
from .modules import (
    StateWriter,
    at_in,
    check_hidden,
    config_of,
    name_in_files,
    places_of,
    texts_in,
    twin_of,
)
from .running import reads_of, ruled_records
from .steps import SameTrace, other_dtypes
from .traces import (
    Met,
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


class Everything:
    """All contents of the file, created before the file is touched."""

    def __init__(
        self,
        module: Module,
        signatures: Mapping[str, Callable[..., Any]],
        golden: bool,
        custom_gradients: bool,
        sizes: str,
        functions: bool = True,
    ) -> None:
        self.datasets: dict[str, np.ndarray[Any, Any]] = {}
        self.texts: dict[str, str] = {}
        self._modules: list[Module] = [module, *module.submodules]
        self._texts: set[str] = set()  # in configurations
        self._variables: list[Variable] = list(module.variables)
        # where a variable is stored, and what golden vectors call it
        self._places = places_of(module)
        self._labels = {key: variable_label(place) for key, place in self._places.items()}
        # numbers in the file, by identity
        self._met = {id(item): Met.by(item) for item in self._modules}
        self._module_numbers = {id(item): i for i, item in enumerate(self._modules)}
        self._variable_numbers = {id(item): i for i, item in enumerate(self._variables)}
        self._function_numbers: dict[Any, int] = {}
        self._saved: list[SavedFunction] = []  # keeps alive what was numbered by identity
        self._stored = {"constants": 0, "arrays": 0}
        self._graphs = GraphWriter(self._variable_number, self._add_constant, custom_gradients)
        self._kernels = KernelCheck()
        self._functions: list[dict[str, Any]] = []
        self._golden = golden
        self._sizes = sizes
        self._with_functions = functions
        self._root_is_called = False
        self._classless: set[int] = set()
        # modules of known classes that run ops with other rules, each with the first such op
        self.replaced: list[tuple[str, str]] = []
        # whether Python code of which a trace is saved was not run, so that nobody knows its reads
        self._blind = False
        self._known = {cls: name for name, cls in registry().modules.items()}
        self._state = StateWriter(module, self._number_of, self._add_array, self._op)
        # what Python holds and the file does not, by path
        self.left_out = self._state.left_out
        self._collect(signatures)

    def _collect(self, signatures: Mapping[str, Callable[..., Any]]) -> None:
        """Trace functions, and create the manifest and everything that it refers to."""
        records = [self._module(item) for item in self._modules]
        if signatures and "signatures" in records[0]["attributes"]:
            raise SaveError(
                "signatures: the module has an attribute 'signatures', which they would replace"
            )
        given = {**signatures_of(self._modules[0]), **signatures}
        lost = {name: getattr(function, "reason", "") for name, function in given.items()}
        lost = {name: reason for name, reason in lost.items() if reason}
        given = {name: function for name, function in given.items() if name not in lost}
        with reads_of(self._runs_python(given)) as reads:
            for i, item in enumerate(self._modules):
                self._add_functions(i, item, records[i])
            named = {name: self._signature(name, function) for name, function in given.items()}
        rules = [self._rule(*kept) for kept in self._graphs.rules.kept()]
        self._absorbed(records, reads, bool(named))
        self.left_out += [f"signatures[{x!r}] ({MISSING}{why_not})" for x, why_not in lost.items()]
        check_hidden(self._state.hidden, self._variable_numbers)
        manifest_text = dump(self._manifest(records, named, rules), "the module tree")
        self.texts = {"/manifest": manifest_text, **self.texts}
        total = sum(map(tokens, self.texts.values()))
        if total > MAX_TOKENS:
            raise SaveError(
                f"the graphs and the module tree have {total:,} tokens as JSON, more than readers "
                f"accept ({MAX_TOKENS:,}); {UNROLLED}"
            )

    @property
    def traces(self) -> list[ConcreteFunction]:
        """All traces in the file."""
        return [trace for function in self._saved for trace in function.concrete]

    def _manifest(
        self, records: list[dict[str, Any]], named: dict[str, int], rules: list[dict[str, Any]]
    ) -> dict[str, Any]:
        return {
            "modules": records,
            "signatures": named,
            **({"rules": rules} if rules else {}),
            "functions": self._functions,
            "variables": [self._variable(v) for v in self._variables],
            "requires": self._requires(),
        }

    def _requires(self) -> list[dict[str, Any]]:
        classes = {type(x) for x in self._modules if id(x) not in self._classless}
        known = [self._known[cls] for cls in classes if cls in self._known]
        return requirements(self._graphs.ops.values(), known, self._texts)

    def _runs_python(self, given: Mapping[str, Any]) -> bool:
        """Return whether code may run whose reads matter: code of classes that readers lack."""
        known = self._known
        unknown = [x for x in self._modules if type(x) not in known or call_replaced(x)]
        return bool(given) or (
            self._with_functions and any(is_called(item) or item.functions() for item in unknown)
        )

    # -- modules -------------------------------------------------------------------------------

    def _module(self, module: Module) -> dict[str, Any]:
        """Return a module's record, without its functions."""
        where = self._where(module)
        known = self._class_of(module, where)
        if not module._gradtape_any_name and not IDENTIFIER.match(module.name):
            raise SaveError(
                f"{where}: a module's name in a file has only ASCII letters, digits and '_'; "
                "rename it"
            )
        record: dict[str, Any] = {
            "name": name_in_files(module.name),
            "class": known,
            "class_name": module.class_name
            if isinstance(module, LoadedModule)
            else type(module).__name__,
            "functions": {},
            "untraced": dict(module.untraced) if isinstance(module, LoadedModule) else {},
        }
        if known is None:
            record["attributes"], absent = self._state.attributes(module)
            record["untraced"] |= absent
            if is_ordered(module):
                record["ordered"] = True
        else:
            twin = partial(twin_of, module, where)
            record["attributes"], extra = self._state.known_attributes(module, twin)
            record |= {"extra": extra} if extra else {}
        if is_frozen(module):
            numbers = self._variable_numbers
            held = (numbers.get(id(v)) for v in frozen_variables(module))
            record["frozen"] = [number for number in held if number is not None]
        if isinstance(module, Optimizer):
            trained = [self._variable_numbers.get(id(v)) for v in module.trained]
            if trained and None not in trained:  # else its file is without the model
                record["trained"] = trained
        return record

    def _add_functions(self, index: int, module: Module, record: dict[str, Any]) -> None:
        """Trace a module's functions for its record."""
        known, where, untraced = record["class"], self._where(module), record["untraced"]
        saved: list[SavedFunction] = []
        if known is not None:
            record["config"] = config_of(module, self._op, self._callable, where)
            self._texts |= texts_in(record["config"])
        elif self._with_functions:
            saved, names = functions_of(module, where, self.left_out)
            untraced |= dict.fromkeys(names, "no input_signature, and never called before saving")
            lost = {name: getattr(x, "reason", "") for name, x in module.functions().items()}
            untraced |= {name: MISSING + reason for name, reason in lost.items() if reason}
            missing = [name for name, why in untraced.items() if why.startswith(MISSING)]
            self._state.left_out += [f"{module.name}.{name} ({untraced[name]})" for name in missing]
        else:
            names = [*module.functions(), *(["__call__"] if is_called(module) else [])]
            untraced |= dict.fromkeys(names, "saved with functions=False")
        if self._with_functions and (known is None or index == 0):
            try:
                met = self._met[id(module)]
                call = trace_call(module, met, f"{where}.__call__", self._sizes, self.left_out)
                saved += [call] if call is not None else []
                self._root_is_called |= call is not None and index == 0
                saved += self._masks_of(module, where, untraced) if index and call else []
            except SaveError as error:
                alone = isinstance(error, NeedsSizes) and not self._root_is_called
                if index == 0 or alone:
                    raise
                # the module above it is what will be called; say what is missing, and go on
                untraced["__call__"] = why(error)
        for function in saved:
            name = function.name
            if name != "__call__" and (not is_attribute(name) or shadows(LoadedModule, name)):
                raise SaveError(
                    f"{where}: a function cannot be called {name!r} in a file: every module has an "
                    "attribute of that name, or it has characters other than ASCII letters, digits "
                    "and '_'"
                )
            record["functions"][name] = self._function(function, of_module=known is None)
        if not untraced:
            del record["untraced"]
        if self._with_functions:
            ruled = ruled_weights(module) if known is None else iter(vars(module).get(RULED, ()))
            numbers = self._variable_number, self._rule_of
            record |= ruled_records(module, ruled, *numbers, self.left_out)

    def _masks_of(
        self, module: Module, where: str, untraced: dict[str, str]
    ) -> list[SavedFunction]:
        """Trace how a layer inside a model changes masks."""
        try:
            met = self._met[id(module)]
            mask = trace_mask(module, met, f"{where}.compute_mask", self._sizes)
        except SaveError as error:
            untraced["compute_mask"] = why(error)
            return []
        return [] if mask is None else [mask]

    def _absorbed(
        self, records: list[dict[str, Any]], reads: set[tuple[int, str]], signed: bool
    ) -> None:
        """Record which attributes graphs have read; refuse modules that could not be called."""
        unknown = [i for i, record in enumerate(records) if record["class"] is None]
        callers = [i for i in unknown if records[i]["functions"] or (signed and i == 0)]
        within = reached(records, callers)
        for i in unknown:
            module, record = self._modules[i], records[i]
            if i not in within:
                self._check_callable(module, bool(callers) or len(unknown) < len(records))
            elif not self._blind:
                known = absorbed(module)
                record["absorbed"] = [
                    name
                    for name in record["attributes"]
                    if name in known or (id(module), name) in reads
                ]

    def _check_callable(self, module: Module, others: bool) -> None:
        """Refuse a module that can be called here, but could not be called when loaded.

        If ``others`` can be called, a part without weights to train is kept for its state: a
        metric, a loss, a learning rate schedule.
        """
        if module is not self._modules[0] and others:
            unbuilt = any(map(is_unbuilt, (module, *module.submodules)))
            if not unbuilt and not any(variable.trainable for variable in module.variables):
                return
        never = not isinstance(module, LoadedModule) and not self._met[id(module)].calls
        if self._with_functions and is_called(module) and never:
            raise SaveError(
                f"{self._where(module)}{at_in(self._modules[0], module)} was never called. A "
                "module that was never called has no trace, and could not be called after loading. "
                "Call it once on typical inputs and save it then; or save its variables and "
                "structure only: gradtape.save(..., functions=False)"
            )

    def _where(self, module: Module) -> str:
        return f"module {module.name!r} ({type(module).__name__})"

    def _class_of(self, module: Module, where: str) -> str | None:
        """Return the name of a class that its plugin provides to readers, or None.

        A class runs its own code there, with the reader's gradient rules. A module whose code runs
        ops with replaced rules is saved as its traces instead.
        """
        known = self._known.get(type(module))
        if known is not None and call_replaced(module):  # readers would run the class's
            self._classless.add(id(module))
            return None
        if known is None or not (self._graphs.rules.active and self._with_functions):
            return known
        try:
            call = trace_call(module, self._met[id(module)], f"{where}.__call__", self._sizes)
        except NeedsSizes:  # to look at the ops that it runs
            call = trace_call(module, self._met[id(module)], f"{where}.__call__", "seen")
        nodes = (node for x in call.concrete for node in op_nodes(x.graph)) if call else ()
        name = next((node.op.name for node in nodes if self._graphs.rules.differs(node, where)), "")
        if not name:
            return known
        self.replaced.append((f"{where}{at_in(self._modules[0], module)}", name))
        self._classless.add(id(module))
        return None

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
        self.datasets[dataset] = to_numpy(variable.array)
        return {
            "dataset": dataset,
            "name": variable.name,
            "trainable": variable.trainable,
            "shape": list(variable.shape),
            "dtype": variable.dtype.name,
            **_stream_record(variable),
        }

    def _add_constant(self, array: np.ndarray[Any, Any]) -> str:
        return self._add("constants", array)

    def _add_array(self, array: np.ndarray[Any, Any]) -> str:
        return self._add("arrays", array)

    def _add(self, group: str, array: np.ndarray[Any, Any]) -> str:
        path = f"/{group}/{self._stored[group]}"
        self._stored[group] += 1
        self.datasets[path] = np.array(array)
        return path

    # -- functions -----------------------------------------------------------------------------

    def _rule(self, stored: StoredRule | SharedRule, where: str) -> dict[str, Any]:
        path = f"/rules/{sum(path.startswith('/rules/') for path in self.texts)}"
        if stored.graph is not None:
            self._kernels.check(stored.graph, where)
        self.texts[path] = dump(self._graphs.rule(stored, where), where)
        return {"dataset": path}

    def _op(self, op: Op) -> None:
        self._graphs.ops[op.name] = op

    def _callable(self, function: Any, module: Module, where: str) -> int:
        return self._function(
            trace_callable(function, module, self._met[id(module)], where, self._sizes)
        )

    def _rule_of(self, rule: Any, weight: Variable, regularizer: bool, where: str) -> int:
        return self._function(trace_rule(rule, weight, regularizer, where))

    def _signature(self, name: str, function: Any) -> int:
        if not IDENTIFIER.match(name):
            raise SaveError(f"signatures: {name!r} is not an identifier")
        if isinstance(function, ConcreteFunction):
            self._blind = True
            function = RestoredFunction(name, plain_signature(function), [function])
        saved = None
        if isinstance(function, (Function, RestoredFunction)):
            saved = with_traces(name, f"signatures: {name!r}", function)
        if saved is None:
            raise SaveError(
                f"signatures: {name!r} must be a gradtape.function that has an input_signature or "
                "has been called"
            )
        return self._function(saved)

    def _function(self, function: SavedFunction, of_module: bool = False) -> int:
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
        self._state.left_out += lost_defaults(function, record["parameters"])
        if function.sizes == "seen":
            record["sizes"] = "seen"
        if function.converts:
            record["converts"] = True
        self._functions.append(record)
        weighed: list[Any] = []  # graphs whose gradients were compared
        for i, concrete in enumerate(function.concrete):
            n = len(self.texts)
            path = f"/functions/{n}"
            where = f"function {function.name!r}"
            self._kernels.check(concrete.graph, where)
            traced = self._graphs.function(concrete)
            self.texts[path] = dump(traced, where)
            trace: dict[str, Any] = {"dataset": path}
            if self._golden:
                again = traced["graph"] in weighed
                self._compare(trace, n, function, concrete, function.seen_by(i), again)
                weighed += [traced["graph"]] if trace.get("golden") else []
            unrun = not self._golden or "not_sampled" in trace
            self._blind |= unrun and isinstance(function.original, Function)
            dtypes = other_dtypes(function, concrete) if of_module else []
            if dtypes:
                trace["dtypes"] = dtypes
            record["traces"].append(trace)
        return number

    def _compare(
        self,
        trace: dict[str, Any],
        number: int,
        function: SavedFunction,
        concrete: ConcreteFunction,
        seen: Sequence[Shapes],
        again: bool,
    ) -> None:
        """Compare a trace with the Python code, and keep samples of the results.

        Second gradients are computed once, and so are those of large variables; neither is repeated
        ``again`` for a trace of the same graph. Large variables are not run at a larger batch
        alone. The trace itself runs one sample of small ones, whatever steps it takes.
        """
        cases: list[dict[str, Any]] = []
        inner: list[Any] = []  # sizes other than the batch's
        checked = False  # whether losses were compared
        held = self._variables, self._labels
        for i, sample in enumerate(sample_inputs(concrete, number, seen)):
            light = is_light(concrete, sample.inputs)
            if not light and not sample.stored and inner == [x.shape[1:] for x in sample.inputs]:
                continue
            order = max((2 if light else 1) - bool(cases) - again, 0)
            inner = [x.shape[1:] for x in sample.inputs]
            try:
                if (concrete.added or concrete.masks) and not checked:
                    compared(*function.with_asides(concrete), sample, *held, 0)
                    checked = True
                found = compared(function, concrete, sample, *held, order, light and not cases)
                if found.problem is not None:
                    raise found.problem
            except SaveError:
                raise
            except SameTrace:  # it would be one pass more over large variables for nothing new
                continue
            except Exception as error:  # the samples are ours, not the user's: not every one fits
                trace.setdefault("not_sampled", why(error))
                if isinstance(error, EndlessLoop):  # it takes long, and others would do the same
                    break
                continue
            if self._graphs.left_out or sum((sample.stored, sample.is_small, not cases)) < 2:
                continue
            base = f"/golden/{number}/{i}"
            for dtype, flat in packed([*sample.inputs, *found.values.values()]).items():
                self.datasets[f"{base}/{dtype}"] = flat
            cases.append(
                {
                    "case": base,
                    "elements": "spread",
                    "inputs": [spec_record(x.shape, x.dtype) for x in sample.inputs],
                    "values": [spec_record(x.shape, x.dtype, k) for k, x in found.values.items()],
                }
            )
        if cases:
            trace["golden"] = cases
            trace.pop("not_sampled", None)


def _stream_record(variable: Variable) -> dict[str, Any]:
    """Describe a stream of random numbers: the shared one, or who seeded it."""
    if not isinstance(variable, Stream):
        return {}
    return {"stream": "shared" if variable is Stream.shared else {"drawn": variable.drawn}}
