"""The first steps of a save: what a module consists of, and who has which number in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.extend import NAMED, Function, Module, Op, Variable, call_replaced, registry
from ...training import Optimizer, schedules
from ..errors import SaveError
from ..records.held import check_held
from ..records.loaded import LoadedModule, signatures_of
from ..records.manifest import RequirementRecord
from ..records.schema import IDENTIFIER, variable_label
from .graphs import KeptRules, op_nodes
from .modules import at_in, places_of
from .traces import History, NeedsSizes, is_called, trace_call


@dataclass(frozen=True)
class Options:
    """The options of :func:`gradtape.save`."""

    golden: bool
    custom_gradients: bool
    sizes: str
    functions: bool


@dataclass(frozen=True)
class Part:
    """A module of the tree.

    Attributes
    ----------
    where
        Its name in messages.
    known
        The name of its class, if readers have it; otherwise it is saved as its traces.
    history
        Its calls before it is saved.
    is_rate
        Whether an optimizer calls it with the number of each step.
    """

    module: Module
    where: str
    known: str | None
    history: History
    is_rate: bool = False


@dataclass(frozen=True)
class Collected:
    """What a module consists of.

    Attributes
    ----------
    parts
        The module and those inside it.
    variables
        The variables of all.
    signatures
        Further functions by name.
    lost
        Those of them that were loaded without what they need, each with the reason.
    rules
        The gradient rules that may have to go into the file.
    replaced
        Modules of known classes that run ops with other rules, each with the first such op.
    unprovided
        Classes that say their name in files, which no plugin provides, each with the name.
    """

    parts: list[Part]
    variables: list[Variable]
    signatures: dict[str, Any]
    lost: dict[str, str]
    rules: KeptRules
    replaced: list[tuple[str, str]]
    unprovided: dict[str, str]
    options: Options

    @property
    def root(self) -> Module:
        """The module that is saved."""
        return self.parts[0].module

    @property
    def outermost(self) -> set[int]:
        """The numbers of the modules whose calls are saved for their samples, if readers have them.

        It is the root; for a root without functions (a holder of a model and an optimizer), it is
        also the first modules on each way down that can be called.
        """
        numbers = {id(part.module): i for i, part in enumerate(self.parts)}
        found, seen = {0}, {id(self.root)}
        waiting = [self.root] if _is_holder(self.root) and not self.signatures else []
        while waiting:
            for _, module in waiting.pop().own_leaves():
                if not isinstance(module, Module) or id(module) in seen:
                    continue
                seen.add(id(module))
                if _is_holder(module):
                    waiting.append(module)
                elif id(module) in numbers and is_called(module):
                    found.add(numbers[id(module)])
        return found

    @property
    def python_parts(self) -> list[Module]:
        """The modules whose code only Python has; none if none of it may run."""
        known = set(registry().modules.values())
        modules = [x.module for x in self.parts]
        own = [x for x in modules if type(x) not in known or call_replaced(x)]
        runs = self.options.functions and any(map(_has_code, own))
        if not (self.signatures or runs):
            return []
        return [x.module for x in self.parts if x.known is None]


def collect(
    module: Module, signatures: Mapping[str, Callable[..., Any]], options: Options
) -> Collected:
    """Return what a module consists of.

    Parameters
    ----------
    module
        The module.
    signatures
        Further functions to save, by name.
    options
        How to save it.
    """
    modules = [module, *module.submodules]
    rates = {id(x.learning_rate) for x in modules if isinstance(x, Optimizer)}
    rates |= {id(x) for x in modules if isinstance(x, schedules.LearningRateSchedule)}
    histories = {
        id(item): History.of_steps() if id(item) in rates else History.by(item) for item in modules
    }
    rules = KeptRules(options.custom_gradients)
    replaced: list[tuple[str, str]] = []
    names = _names_in_files()
    parts = []
    for item in modules:
        where = f"module {item.name!r} ({type(item).__name__})"
        try:
            check_held(item)
        except ValueError as error:
            raise SaveError(f"save: {error}") from None
        known = names.get(type(item))
        if known is not None and call_replaced(item):  # readers would run the class's
            known = None
        if not options.functions and _holds_a_formula(item, names):
            known = None
        if known is not None and rules.active and options.functions:
            op = _replaced_op(item, histories[id(item)], where, rules, options.sizes)
            if op:
                replaced.append((f"{where}{at_in(module, item)}", op))
                known = None
        if not item._gradtape_any_name and not IDENTIFIER.match(item.name):
            raise SaveError(
                f"{where}: a module's name in a file has only ASCII letters, digits and '_'; "
                "rename it"
            )
        parts.append(Part(item, where, known, histories[id(item)], id(item) in rates))
    given = {**signatures_of(module), **signatures}
    lost = {name: getattr(function, "reason", "") for name, function in given.items()}
    lost = {name: reason for name, reason in lost.items() if reason}
    given = {name: function for name, function in given.items() if name not in lost}
    own = {type(x).__name__: x.saved_as for x in modules}
    provided = registry().modules
    unprovided = {cls: name for cls, name in own.items() if name is not None}
    unprovided = {cls: name for cls, name in unprovided.items() if name not in provided}
    return Collected(
        parts, list(module.variables), given, lost, rules, replaced, unprovided, options
    )


def _names_in_files() -> dict[type, str]:
    """Return the name of each class that a plugin provides: of several, the one that it says."""
    provided = registry().modules
    names = {cls: name for name, cls in provided.items()}
    said = {cls: getattr(cls, "saved_as", None) for cls in names}
    return names | {cls: name for cls, name in said.items() if name and provided.get(name) is cls}


def _has_code(module: Module) -> bool:
    """Return whether a module has functions that only Python has."""
    return is_called(module) or bool(module.functions()) or isinstance(module, Optimizer)


def _is_holder(module: Module) -> bool:
    """Return whether a module has no functions; one from a file has those of the file."""
    if isinstance(module, LoadedModule):
        return not (module.functions() or isinstance(module, Optimizer))
    return not _has_code(module)


def _holds_a_formula(module: Module, names: Mapping[type, str]) -> bool:
    """Return whether an optimizer is around another one whose class readers do not know."""
    inside = module.submodules if isinstance(module, Optimizer) else ()
    return any(isinstance(x, Optimizer) and type(x) not in names for x in inside)


def _replaced_op(module: Module, history: History, where: str, rules: KeptRules, sizes: str) -> str:
    """Return the first op that a module of a known class runs with another rule, if there is one.

    A class runs its own code in a reader, with the reader's gradient rules. A module whose code
    runs ops with replaced rules is saved as its traces instead.
    """
    try:
        call = trace_call(module, history, f"{where}.__call__", sizes)
    except NeedsSizes:  # to look at the ops that it runs
        call = trace_call(module, history, f"{where}.__call__", "seen")
    nodes = (node for x in call.concrete for node in op_nodes(x.graph)) if call else ()
    return next((node.op.name for node in nodes if rules.differs(node, where)), "")


@dataclass(frozen=True)
class Numbers:
    """The numbers of modules and variables in the file, by identity.

    Attributes
    ----------
    modules
        The numbers of modules.
    variables
        The variables by number; one that a function reads and the tree does not hold joins them.
    places
        The dataset of each variable.
    labels
        What golden vectors call it.
    """

    modules: dict[int, int]
    variables: list[Variable]
    places: dict[int, str]
    labels: dict[int, str]
    _numbers: dict[int, int]

    def variable(self, variable: Variable) -> int:
        """Return the number of a variable, which comes along if the tree does not hold it."""
        number = self.known(variable)
        if number is None:
            number = self._numbers[id(variable)] = len(self.variables)
            self.variables.append(variable)
            self.places[id(variable)] = f"/captured/{number}"
            self.labels[id(variable)] = f"captured/{number}"
        return number

    def known(self, variable: Variable) -> int | None:
        """Return the number of a variable that has one so far."""
        return self._numbers.get(id(variable))

    def reference(self, item: Variable | Module) -> dict[str, int] | None:
        """Return what attributes say instead of a variable or a module."""
        if isinstance(item, Module):
            number = self.modules.get(id(item))
            return None if number is None else {"module": number}  # a class may hide a module
        return {"variable": self.variable(item)}


def number(collected: Collected) -> Numbers:
    """Return the numbers of what was collected."""
    places = places_of(collected.root)
    return Numbers(
        {id(part.module): i for i, part in enumerate(collected.parts)},
        list(collected.variables),
        places,
        {key: variable_label(place) for key, place in places.items()},
        {id(variable): i for i, variable in enumerate(collected.variables)},
    )


def requirements(
    ops: Iterable[Op], classes: Iterable[str], words: Iterable[str]
) -> list[RequirementRecord]:
    """Return a record for each plugin that provides some of these ops, classes and names.

    Parameters
    ----------
    ops
        The ops in a file's graphs.
    classes
        The names of its modules' classes.
    words
        The texts in its configurations, some of which may name an activation, an initializer, ...

    Raises
    ------
    SaveError
        If no plugin provides an op.
    """
    known = registry()
    providers = [(known.owner("op", op.name), "ops", op.name) for op in ops]
    providers += [(known.owner("module", name), "modules", name) for name in classes]
    in_graphs = {name for _, kind, name in providers if kind == "ops"}
    # a third party's name has a dot or colons in it; bare names are gradtape's own
    for word in sorted(x for x in set(words) - in_graphs if "::" in x or "." in x):
        found = (known.owner("name", (kind, word)) for kind in NAMED)
        providers += [(info, "names", word) for info in found if info is not None][:1]
    needed: dict[str, tuple[Any, dict[str, list[str]]]] = {}
    for info, kind, name in providers:
        if info is None:
            raise SaveError(f"op {name!r} belongs to no registered plugin, so no file can name it")
        key = f"{info.distribution or info.name}:{info.name}"
        needed.setdefault(key, (info, {}))[1].setdefault(kind, []).append(name)
    return [
        RequirementRecord(
            plugin=info.name,
            distribution=info.distribution,
            version=info.version,
            ops=sorted(parts.get("ops", [])),
            modules=sorted(parts.get("modules", [])),
            names=parts.get("names"),
        )
        for _, (info, parts) in sorted(needed.items())
    ]


#: Why a decorated function has no trace.
UNCALLED = "no input_signature, and never called before saving"


def assigned_functions(module: Module) -> list[str]:
    """Return the functions that were assigned to a module of a class that readers have.

    Its file does not hold them.
    """
    return [
        f"{module.name}.{name} (a function assigned to a {type(module).__name__}, which comes back "
        "from its configuration: assign both to a gradtape.Module)"
        for name, value in vars(module).items()
        if isinstance(value, Function)
    ]
