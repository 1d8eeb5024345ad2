"""``features``: a loaded model without one of its parts, and without what comes after the part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.extend import (
    RULED,
    ConcreteFunction,
    Graph,
    Module,
    Output,
    RestoredFunction,
    Stream,
    Tensor,
    TensorSpec,
    Variable,
    freeze,
    frozen_variables,
    is_frozen,
    prune,
    replay,
    tracing_into,
)
from ...layers import Model, Sequential
from ..records.held import absorb, absorbed, check_held, hold
from ..records.loaded import LoadedModule, is_ordered
from .matching import Effort, dependents, input_of, reads_of

__all__ = ["features"]


def features(model: Module, before: str | Module) -> Module:
    """Return what a loaded model computes before one of its parts, to add another part after it.

    A file holds graphs instead of code, and the graphs contain every part, so a part cannot be
    replaced. This function finds the call of the part in the graphs, and ends the graphs there.

    Parameters
    ----------
    model
        A module that :func:`gradtape.load` returned, of a class that no plugin provides.
    before
        The part, such as the last layer: a module inside, or its path as
        :meth:`Module.named_leaves` returns it. It must have weights, and take one tensor.

    Returns
    -------
    Module
        Its call takes what the model's call takes, and returns the input of the part. It shares the
        variables and modules before the part with ``model``: training one changes the other.

    Raises
    ------
    TypeError
        If ``model`` has Python code: use or replace its parts directly.
    ValueError
        If there is no such part, its call is not found, or the model calls it several times; if the
        result of the part depends on the input's shape only; or if too many places look like its
        call.

    Examples
    --------
    >>> import os, tempfile
    >>> class Net(gt.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden, self.out = gt.layers.Dense(4), gt.layers.Dense(2)
    ...     def __call__(self, x):
    ...         return self.out(gt.nn.relu(self.hidden(x)))
    >>> net = Net()
    >>> x = gt.ones((1, 3))
    >>> y = net(x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "net.h5")
    ...     gt.save(net, path)
    ...     loaded = gt.load(path)
    >>> body = gt.saving.features(loaded, before="out")
    >>> body(x).shape
    (1, 4)
    >>> tuned = gt.layers.Sequential([body, gt.layers.Dense(7)])
    >>> tuned(x).shape
    (1, 7)
    """
    if not isinstance(model, LoadedModule):
        raise TypeError(f"features: {_of_live(model)}")
    call = model.functions().get("__call__")
    if not isinstance(call, RestoredFunction):
        raise TypeError(f"features: module {model.name!r} has no call in its file")
    check_held(model)
    part, path = _found(model, before)
    effort = Effort(path)
    traces = [_before(trace, part, effort) for trace in call.concrete_functions]
    made = RestoredFunction("__call__", call.signature, traces, call.sizes, call.converts)
    used, kept = _variables(call.concrete_functions), _variables(traces)
    body = _Tree(model, part, used - kept, kept).without()
    vars(body)["__call__"] = made
    hold([body])
    return body


def _of_live(model: Any) -> str:
    who = f"module {model.name!r}" if isinstance(model, Module) else f"{model!r}"
    kind = type(model).__name__
    if isinstance(model, Sequential):
        return f"{who} is a Sequential; take its layers: gradtape.layers.Sequential(m.layers[:-1])"
    if isinstance(model, Model) and model.input is not None:
        return (
            f"{who} is a Model; take a layer's input: gradtape.Model(m.input, m.layers[-1].input)"
        )
    if isinstance(model, Module):
        return f"{who} ({kind}) is not from a file, so set the part itself, or call the others"
    return f"expected a loaded module, got {kind}"


def _found(model: Module, before: str | Module) -> tuple[Module, str]:
    parts = {path: x for path, x in model.named_leaves() if isinstance(x, Module)}
    for path, part in parts.items():
        if part is before or path == before:
            return part, path
    named = [(x, path) for path, x in parts.items() if x.name == before]
    if len(named) == 1:
        return named[0]
    if isinstance(found := _at(model, before), Module) and found is not model:  # by another path
        return found, str(before)
    raise ValueError(
        f"features: module {model.name!r} has no part {before!r}; it has: "
        f"{', '.join(parts) or 'none'}"
    )


def _at(model: Module, path: str | Module) -> Any:
    """Return what is at a path of attributes, indices and keys; None if there is nothing."""
    found: Any = model
    for step in path.split("/") if isinstance(path, str) else ():
        if isinstance(found, Module):
            found = vars(found).get(step)
        elif isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, (list, tuple)) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found


def _variables(traces: Iterable[ConcreteFunction]) -> set[Variable]:
    return {v for x in traces for v in x.graph.variables}


def _before(trace: ConcreteFunction, part: Module, effort: Effort) -> ConcreteFunction:
    """Return a trace that ends with the input of a part."""
    graph = trace.graph
    if trace.masks:
        raise ValueError(
            f"features: module {effort.path!r} comes after masks of padding, which are not known "
            "before it"
        )
    taken = input_of(trace, part, effort)
    after = dependents(graph, [taken, *reads_of(graph, part)])
    short = Graph(graph.name)
    short.inputs, short.closure = list(graph.inputs), graph.closure
    short.constants = dict(graph.constants)
    short.nodes = [node for node in graph.nodes if after.isdisjoint(node.outputs)]
    added = [graph.outputs[i] for i in trace.added if graph.outputs[i] not in after]
    short.outputs = [taken, *added]
    short.updates = {v: x for v, x in graph.updates.items() if x not in after}
    whole = prune(_copied(prune(short), trace.specs))
    made = ConcreteFunction(trace.name, whole, trace.arguments, Output(0))
    made.also, made.added = trace.also, tuple(range(1, 1 + len(added)))
    made.names, made.executor = trace.names, trace.executor
    return made


def _copied(graph: Graph, specs: Iterable[TensorSpec]) -> Graph:
    """Return a graph with symbols of its own."""
    made = Graph(graph.name)
    with tracing_into(made):
        inputs = [Tensor(made.input(spec)) for spec in specs]
        made.outputs = [made.adopt(x.array) for x in replay(graph, inputs)]
    return made


class _Tree:
    """Makes modules like others, without a part and what only comes after it.

    Parameters
    ----------
    model
        The module with the others inside.
    part
        The part.
    unused
        The variables that are no longer used.
    used
        The variables that still are.
    """

    def __init__(
        self, model: LoadedModule, part: Module, unused: set[Variable], used: set[Variable]
    ) -> None:
        self._part, self._unused, self._used = part, unused, used
        self._model = model
        # modules and containers may hold each other in cycles: each is made once, and then filled
        self._made = {id(x): (x, _like(x)) for x in _around(model, part)}
        self._containers: dict[int, tuple[Any, Any]] = {}
        self._kept: dict[int, tuple[Any, bool]] = {}

    def without(self) -> LoadedModule:
        """Return such a model, which shares what is left."""
        for module, made in self._made.values():
            for name, value in vars(module).items():
                if name.startswith("_gradtape") or name in ("_name", "signatures"):
                    continue
                if isinstance(value, RestoredFunction) or not self._stays(value):
                    continue
                vars(made)[name] = self._copied(value)
        for module, made in self._made.values():
            self._settle(module, made)
        return self._made[id(self._model)][1]

    def _settle(self, module: Module, made: LoadedModule) -> None:
        """Let a new module be frozen, and have the rules of its weights, as the old one."""
        left = set(made.variables)
        rules = [row for row in vars(module).get(RULED, ()) if row[0] in left]
        if rules:
            vars(made)[RULED] = rules
        if is_frozen(module):
            freeze(made, [v for v in frozen_variables(module) if v in left])
        if isinstance(module, LoadedModule):
            absorb(made, absorbed(module) & vars(made).keys())

    def _stays(self, value: Any) -> bool:
        if value is self._part:
            return False
        if isinstance(value, Variable):
            return value not in self._unused
        if not isinstance(value, Module) or id(value) in self._made:
            return True
        if id(value) not in self._kept:
            own = [v for v in value.variables if not isinstance(v, Stream)]  # which may go on
            stays = self._unused.isdisjoint(own) or not self._used.isdisjoint(own)
            self._kept[id(value)] = value, stays
        return self._kept[id(value)][1]

    def _copied(self, value: Any) -> Any:
        if isinstance(value, Module):
            return self._made[id(value)][1] if id(value) in self._made else value
        if type(value) is tuple:
            return tuple([self._copied(x) for x in value if self._stays(x)])
        if type(value) not in (list, dict):
            return value
        if id(value) not in self._containers:
            made = type(value)()
            self._containers[id(value)] = value, made
            if type(value) is dict:
                made.update((k, self._copied(x)) for k, x in value.items() if self._stays(x))
            else:
                made += [self._copied(x) for x in value if self._stays(x)]
        return self._containers[id(value)][1]


def _around(model: Module, part: Module) -> list[Module]:
    """Return the model, and the modules in it that hold a part, in themselves or others."""
    holders: dict[int, list[Module]] = {}
    for module in (model, *model.submodules):
        for _, leaf in module.own_leaves():
            if isinstance(leaf, Module):
                holders.setdefault(id(leaf), []).append(module)
    found, waiting = {id(model): model}, [part]
    while waiting:
        for holder in holders.get(id(waiting.pop()), ()):
            if holder is not part and id(holder) not in found:
                found[id(holder)] = holder
                waiting.append(holder)
    return list(found.values())


def _like(module: Module) -> LoadedModule:
    """Return a module like another, with nothing in it."""
    kind = module.class_name if isinstance(module, LoadedModule) else type(module).__name__
    return LoadedModule(module.name, kind, {}, is_ordered(module))
