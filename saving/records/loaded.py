"""``LoadedModule``: a module whose class is not known here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.extend import (
    ADDED,
    Module,
    RestoredFunction,
    Stream,
    Variable,
    add_to_loss,
    apply_constraints,
    flatten,
    forget,
    is_frozen,
    keep_mask,
    losses_of,
    passing,
    warn_user,
)
from ...hints import Lacking, told
from ...layers import called, placeholders_in
from ..errors import UnsafeFile
from .held import held, instead, mark_held, tracks
from .schema import dictionaries, is_attribute

#: The start of a reason for a part that is missing, but could be loaded.
MISSING = "loaded with allow_missing: "
_CLASS = "_gradtape_class_name"
_UNTRACED = "_gradtape_untraced"
_ORDERED = "_gradtape_ordered"
_MOVED = "_gradtape_moved"


class LoadedModule(Module):
    """A module whose class is not known here: the saved tree, variables and functions.

    Its functions are attributes named like the original methods; calling it runs the original
    ``__call__``. ``signatures``, if the file has any, is a dictionary of the functions passed to
    ``save(signatures=...)``. Attributes that the functions have read are part of their graphs, and
    cannot be set.
    """

    def __init__(
        self, name: str, class_name: str, untraced: Mapping[str, str], ordered: bool = False
    ) -> None:
        super().__init__(name)
        vars(self)[_CLASS] = class_name
        vars(self)[_UNTRACED] = dict(untraced)
        vars(self)[_ORDERED] = ordered

    @property
    def class_name(self) -> str:
        """The original name of the class."""
        return str(vars(self)[_CLASS])

    @property
    def untraced(self) -> dict[str, str]:
        """The methods and attributes that the file does not hold, with the reasons."""
        return dict(vars(self)[_UNTRACED])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the original call of the module."""
        call = vars(self).get("__call__")
        if call is None:
            raise TypeError(_missing(self, "__call__"))
        if any(placeholders_in((args, kwargs))):  # a layer of a model of inputs and outputs
            return called(self, self.__call__, args, kwargs)
        if _trains(call, args, kwargs):
            _warn_of_statistics(self, call)
        result, losses, masks = call.with_losses_and_masks(*args, **kwargs)
        if ADDED and not passing.get():
            forget(self)
        for loss in losses:
            add_to_loss(self, loss)
        for leaf, mask in zip(flatten(result) if masks else (), masks, strict=True):
            keep_mask(leaf, mask)
        return result

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        mark_held(self)

    def _attribute_order(self) -> list[str]:
        return list(vars(self)) if vars(self)[_ORDERED] else super()._attribute_order()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in held(self) and value is not vars(self).get(name):
            raise AttributeError(_fixed(self, name), name=name, obj=self)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in held(self):
            raise AttributeError(_fixed(self, name), name=name, obj=self)
        super().__delattr__(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copying and printing ask for; not worth a message
            raise AttributeError(name)
        if name in _OF_LAYERS:
            return _OF_LAYERS[name](self)
        raise AttributeError(_missing(self, name), name=name, obj=self)

    def __repr__(self) -> str:
        count = len(self.variables)
        return f"<LoadedModule {self.name!r} of class {self.class_name}: {count} variables>"


#: What layers have, unless a module has its own attribute of this name.
_OF_LAYERS: dict[str, Callable[[Module], Any]] = {
    "losses": losses_of,
    "apply_constraints": lambda module: partial(apply_constraints, module),
}


#: What models of layers have, by which their last layers are replaced.
_OF_GRAPHS = frozenset({"input", "inputs", "output", "outputs", "get_layer", "add", "pop"})


def _fixed(module: LoadedModule, name: str) -> str:
    """Return why an attribute cannot be set."""
    value = vars(module).get(name)
    what, advice = "has its value", "Make it a gradtape.Variable before saving"
    if isinstance(value, Variable):
        what, advice = "reads and assigns it", f"Change its value: .{name}.assign(...)"
    elif tracks(value):
        what, advice = "goes through it", "Assign to the variables in it"
    last = f"/{len(value) - 1}" if isinstance(value, (list, tuple)) else ""
    other = f"; {instead(name + last)}" if tracks(value) and not isinstance(value, Variable) else ""
    return (
        f"module {module.name!r}, saved from class {module.class_name}: {name!r} cannot be set, "
        f"since a graph of this file {what}, and would go on with it. {advice}, or set it "
        f"where the Python code is, and save again{other}"
    )


def _trains(call: RestoredFunction, args: Any, kwargs: Any) -> bool:
    """Return whether these arguments ask for training, by name, by place or by default."""
    value = kwargs.get("training")
    if "training" not in kwargs and (known := call.signature.parameters.get("training")):
        place = list(call.signature.parameters).index("training")
        value = args[place] if place < len(args) else known.default
    return value is True or (isinstance(value, (int, np.bool_)) and bool(value))


def _warn_of_statistics(module: LoadedModule, call: RestoredFunction) -> None:
    """Warn if the graph for training moves statistics of what is frozen, as no live layer does.

    The graph holds the steps of all parts together, so that none of them can run as in inference.
    """
    moved = vars(module).get(_MOVED)
    if moved is None:  # graphs hold these parts, so that they stay
        moved = vars(module)[_MOVED] = _moved_in_training(module, call)
    names, inside, still = moved
    _warn_of_thawed(module, [path for path, part in still if not is_frozen(part)])
    whole = is_frozen(module)
    parts = {} if whole else {path: x for path, part, x in inside if is_frozen(part)}
    if not (names and whole) and not parts:
        return
    names = names if whole else sorted(set().union(*parts.values()))
    shown = ", ".join([*parts][:5]) + (f" and {len(parts) - 5} more" if len(parts) > 5 else "")
    several = len(parts) > 1
    who = "," if whole else f": its part{'s' if several else ''} {shown}"
    warn_user(
        f"module {module.name!r}, saved from class {module.class_name}{who} "
        f"{'are' if several else 'is'} frozen, but its graph for training=True updates "
        f"{', '.join(names)}, since it was traced when {'they were' if several else 'it was'} not; "
        f"call {'it' if whole else 'the module'} with training=False, or freeze "
        f"{'them' if several else 'it'} before {'it' if whole else 'the module'} is saved",
        UserWarning,
    )


def _warn_of_thawed(module: LoadedModule, parts: Sequence[str]) -> None:
    """Warn of parts that were frozen when the graph for training was traced, and no longer are."""
    if parts and not is_frozen(module):
        several = len(parts) > 1
        warn_user(
            f"module {module.name!r}, saved from class {module.class_name}: its part"
            f"{'s' if several else ''} {', '.join(parts[:5])}{' and more' if parts[5:] else ''} "
            f"{'are' if several else 'is'} trainable, but the graph for training=True was traced "
            f"when {'they were' if several else 'it was'} frozen: it uses the moving statistics "
            "and does not update them. Thaw before you save, or make the model by its code and "
            "load the weights (gradtape.load_weights)",
            UserWarning,
        )


def _moved_in_training(
    module: Module, call: RestoredFunction
) -> tuple[list[str], list[tuple[str, Module, list[str]]], list[tuple[str, Module]]]:
    """Return the names of the statistics that training moves: all, and those of each part.

    The parts whose statistics should move in training, but do not, are last.
    """
    moved: dict[bool, set[Variable]] = {True: set(), False: set()}
    for trace in call.concrete_functions:
        moved[_trains(call, *trace.arguments)].update(trace.graph.updates)
    # what moves in inference too is no statistic: the state of a stateful layer, a count of calls
    moving = {x for x in moved[True] - moved[False] if not isinstance(x, Stream)}
    read = {
        x
        for trace in call.concrete_functions
        if _trains(call, *trace.arguments)
        for x in trace.graph.variables
    }
    parts, still = [], []
    for path, part in module.named_leaves() if read else ():
        if isinstance(part, Module):
            place = path.replace("/", ".")
            own = [x.name for _, x in part.own_leaves() if isinstance(x, Variable) and x in moving]
            parts += [(place, part, own)] if own else []
            means = [getattr(part, x, None) for x in getattr(part, "averaged_on_ranks", ())]
            used = any(isinstance(x, Variable) and x in read for x in means)
            still += [(place, part)] if used and not own else []
    return sorted({x.name for x in moving}), parts, still


def _missing(module: LoadedModule, name: str) -> str:
    reason = vars(module).get(_UNTRACED, {}).get(name)
    if reason is None and name == "__call__":
        reason = "it was never called before it was saved"
    said = f" ({reason})" if reason else ""
    functions = ", ".join(module.functions()) or "none"
    hint = inspect.getattr_static(type(module), name, None)
    use = told(hint.instead) if isinstance(hint, Lacking) else ""
    if name in _OF_GRAPHS:
        use = told("gradtape.saving.features(model, before=...) for what comes before a part")
    return (
        f"module {module.name!r}, saved from class {module.class_name}, has no {name!r}{said}; the "
        f"functions that were saved with it: {functions}{use}"
    )


def is_ordered(module: Module) -> bool:
    """Return whether a module lists variables in the order in which they were set, as layers do."""
    if isinstance(module, LoadedModule):
        return bool(vars(module)[_ORDERED])
    return type(module)._attribute_order is not Module._attribute_order


def shadows(cls: type, name: str) -> bool:
    """Return whether an attribute would hide something that ``cls`` gives its instances.

    A class that a plugin provides may give its attributes defaults of plain types.
    """
    missing = object()
    found = inspect.getattr_static(cls, name, missing)
    if found is missing or isinstance(found, Lacking):
        return False
    return (
        cls is LoadedModule or hasattr(Module, name) or callable(found) or hasattr(found, "__get__")
    )


def check_name(name: Any, cls: type, where: str) -> str:
    """Return a name from a file that may become an attribute of an instance of ``cls``."""
    if not is_attribute(name):
        raise UnsafeFile(f"{where}: {str(name)[:80]!r} is not an attribute name")
    if shadows(cls, name):
        raise UnsafeFile(
            f"{where}: {name!r} is a name that {cls.__name__} has itself, and that no file may take"
        )
    return str(name)


def signatures_of(module: Module) -> dict[str, RestoredFunction]:
    """Return the signatures that a module was loaded with."""
    found = vars(module).get("signatures")
    if type(found) is dict and all(isinstance(f, RestoredFunction) for f in found.values()):
        return dict(found)
    return {}


def reached(attributes: Sequence[Any], roots: Iterable[int]) -> set[int]:
    """Return the numbers of these modules of a file and of those inside them, at any depth.

    Parameters
    ----------
    attributes
        The JSON of each module's attributes.
    roots
        The numbers to begin with.
    """
    found: set[int] = set()
    queue = [number for number in roots if 0 <= number < len(attributes)]
    while queue:
        number = queue.pop()
        if number not in found:
            found.add(number)
            queue += [n for n in _module_numbers(attributes[number]) if n < len(attributes)]
    return found


def _module_numbers(encoded: Any) -> Iterable[int]:
    """Yield the numbers of the modules in a file's attributes."""
    for record in dictionaries(encoded):
        number = record.get("module")
        if type(number) is int and len(record) == 1 and number >= 0:
            yield number
