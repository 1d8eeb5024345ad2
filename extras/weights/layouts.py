"""The names and axes of Keras's and PyTorch's weights.

Keras names the parts of models by class and number (``layers/dense/vars/0``), PyTorch by attributes
(``0.weight``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.extend import Module, Variable, frozen_variables, lazy_module, snake_case
from ..saving.errors import printable
from ..saving.weights.arrays import Arrays
from ..saving.weights.layouts import Features, Layout, plain
from ..saving.weights.mapping import Renamed
from ..saving.weights.names import JointPart, Names, WeightSlot, declared_names

# -- Keras -----------------------------------------------------------------------------------------

_KERAS = re.compile(r"(^|/)vars/\d+$")


class KerasLayout(Layout):
    """Keras's names; old files have the names of layers, and models in groups of their names."""

    names_modules = True

    def plain(self, name: str) -> str:
        """Return a name with "/" between its parts, and the present name for lists of layers."""
        return plain(name).replace("_layer_checkpoint_dependencies/", "layers/")

    def numbered(self, index: int) -> str:
        """Return the name of a variable by its place."""
        return f"vars/{index}"

    def further_names(
        self, module: Module, leaves: Sequence[tuple[str, Variable | Module]]
    ) -> Mapping[int, Mapping[str, int]]:
        """Return the names by numbers."""
        return _numbers(module, leaves)

    def recognised(
        self, model: Module, arrays: Arrays, renamed: Mapping[str, Renamed]
    ) -> tuple[Names, frozenset[str]] | None:
        """Return the model's names if variables have numbers."""
        if any(map(_KERAS.search, arrays.entries)):
            return Names(model, self), frozenset()
        return None


def _numbers(
    module: Module, leaves: Sequence[tuple[str, Variable | Module]]
) -> dict[int, dict[str, int]]:
    """Return Keras's names of the variables and modules directly in a module, by identity.

    Variables are numbered, trainable ones first. Modules in a container are named by their class
    and a number. The same holds for all modules of a model, in a list ``layers``, which contains
    those that come after it in the alphabet.
    """
    # in the order in which they were set
    places = {name: i for i, name in enumerate(vars(module))}
    ordered = sorted(leaves, key=lambda leaf: places[leaf[0].partition("/")[0]])
    variables = [leaf for _, leaf in ordered if isinstance(leaf, Variable)]
    frozen = frozen_variables(module)
    trained = [v for v in variables if v.trainable or any(v is x for x in frozen)]
    others = [v for v in variables if all(v is not x for x in trained)]
    found = {id(v): {f"vars/{i}": 1} for i, v in enumerate([*trained, *others])}
    counts: Counter[tuple[str, str]] = Counter()
    for path, leaf in ordered:
        if not isinstance(leaf, Module):
            continue
        kind = declared_names(leaf, "keras").get("", (snake_case(type(leaf).__name__),))[0]
        names = found[id(leaf)] = {}
        containers = {"layers": 2}
        if "/" in path:
            containers[path.rpartition("/")[0]] = 1
        for container, rank in containers.items():
            count = counts[container if rank == 1 else "", kind]
            counts[container if rank == 1 else "", kind] += 1
            names.setdefault(
                f"{container}/{kind}_{count}" if count else f"{container}/{kind}", rank
            )
    return found


# -- PyTorch ---------------------------------------------------------------------------------------

# Only for messages about names of which the model has none.
_PYTORCH = re.compile(r"(^|[./])(weight|running_mean|running_var|num_batches_tracked)$")


class PyTorchLayout(Layout):
    """PyTorch's names and axes; features of flattened images are ordered by channel."""

    is_sure = False
    is_written = names_every_class = transposes = True

    def leaves_out(self, name: str) -> str:
        """Return why the counts of batch normalization are left out."""
        return "PyTorch's count of batches" if name.endswith("num_batches_tracked") else ""

    def features(self, model: Module, kernels: Sequence[Variable]) -> Features:
        """Return the features of flattened images."""
        found: Features = lazy_module("weights.flattened").features_of(model, kernels)
        return found

    def suspected(
        self, widths: Iterable[int], kernels: Iterable[Variable], variables: Iterable[Variable]
    ) -> set[int]:
        """Return the numbers of inputs that look like flattened images."""
        found: set[int] = lazy_module("weights.flattened").looks_flattened(
            widths, kernels, variables
        )
        return found

    def in_doubt(self, names: Sequence[str]) -> str:
        """Return a warning about variables with features in an unknown order, or ""."""
        return str(lazy_module("weights.flattened").in_doubt(names))

    def recognised(
        self, model: Module, arrays: Arrays, renamed: Mapping[str, Renamed]
    ) -> tuple[Names, frozenset[str]] | None:
        """Return the model's names if arrays are PyTorch's, and which have the model's axes.

        A name that is a path of the model means that variable, with its axes. Only other names, and
        what the file says of itself, tell that arrays are PyTorch's.

        Raises
        ------
        ValueError
            If a name is a path of the model and PyTorch's name for an array of other axes, and its
            shape fits both.
        """
        there = Names(model, self)
        theirs = {plain(name): slot for slot in there.slots for name in slot.elsewhere}
        kept, both, found = set(), [], False
        foreign = arrays.layout == self.name
        for name in arrays.entries:
            target, axes = renamed[name]
            if target is None:
                continue
            if not there.is_own(target):
                foreign = foreign or bool(there.find(target))
                continue
            found = True
            slot = there.find(target)[0]
            namesake = theirs.get(plain(name))
            if plain(name) != plain(target):
                # a mapping to the model's paths; the file's name tells whose axes these are
                if _last(name) == _last(target):
                    kept.add(name)
                elif axes is None and _last(name) in _names_there(slot):
                    foreign = True
            elif namesake is None:
                kept.add(name)
            elif namesake is not slot or namesake.converts:
                both.append((name, slot, namesake))
        if not foreign and both:
            foreign = _by_shapes(both, arrays)
        if not foreign:
            unknown = not found and any(map(_PYTORCH.search, arrays.entries))
            return (there, frozenset()) if unknown else None
        return there, frozenset(kept)


def _by_shapes(both: list[tuple[str, Any, WeightSlot]], arrays: Arrays) -> bool:
    """Return whether only PyTorch's axes give arrays the shapes of their variables."""
    ours = theirs = True
    for name, slot, namesake in both:
        shape = arrays.entries[name].shape
        ours = ours and _fits(slot, shape)
        if namesake.axes is not None and len(namesake.axes) == len(shape):
            shape = tuple(shape[axis] for axis in namesake.axes)
        theirs = theirs and _fits(namesake, shape)
    if ours and theirs:
        name, _, namesake = both[0]
        raise ValueError(
            f"load_weights: {arrays.path}: {printable(name)!r} is a path of the model, and also "
            f"PyTorch's name for {namesake.path}, which has other axes there; its shape fits both. "
            'Pass layout="gradtape" or layout="pytorch"'
        )
    return theirs


def _fits(slot: WeightSlot, shape: tuple[int, ...]) -> bool:
    return slot.variable is None or slot.convert is not None or slot.variable.shape == shape


def _names_there(target: WeightSlot | JointPart) -> set[str]:
    if isinstance(target, JointPart) or not target.converts:
        return set()
    return {_last(name) for name in target.elsewhere}


def _last(name: str) -> str:
    return plain(name).rpartition("/")[2]


KERAS = KerasLayout("keras", "Keras")
PYTORCH = PyTorchLayout("pytorch", "PyTorch", stated="pt")
