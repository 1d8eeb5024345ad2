"""Layouts: whose names and axes the arrays of a weights file have.

gradtape's own is :data:`OWN`. Formats of plugins bring others (hook ``gradtape_formats``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.extend import Module, Variable, registry

if TYPE_CHECKING:
    from .arrays import Arrays
    from .mapping import Renamed
    from .names import Names

#: How to get a layout that a plugin of gradtape's own provides.
RESTORE = "run pip install --force-reinstall gradtape"


class Features(NamedTuple):
    """Axes of variables with features of flattened images.

    Attributes
    ----------
    channels
        By the identity of a variable: its axes, with the number of channels.
    unsure
        The identities of variables with such features in an order that is not known.
    """

    channels: Mapping[int, Mapping[int, int]]
    unsure: frozenset[int]

    def to_model_order(self, variable: Variable, array: Any) -> Any:
        """Return an array in a framework's order of features in the model's."""
        for axis, channels in self.channels.get(id(variable), {}).items():
            array = _swapped(array, axis, (channels, -1))
        return array

    def to_torch_order(self, variable: Variable, array: Any) -> Any:
        """Return the array of a variable in a framework's order of features."""
        for axis, channels in self.channels.get(id(variable), {}).items():
            array = _swapped(array, axis, (-1, channels))
        return array


def _swapped(array: Any, axis: int, sizes: tuple[int, int]) -> Any:
    shape = array.shape
    parts = array.reshape(*shape[:axis], *sizes, *shape[axis + 1 :])
    return parts.swapaxes(axis, axis + 1).reshape(shape)


NO_FEATURES = Features({}, frozenset())


class Layout:
    """The names and axes of a framework: what its files differ in from those of gradtape.

    Classes say by ``names_elsewhere`` how the framework calls their variables.

    Attributes
    ----------
    name
        The name for ``layout=`` and in ``names_elsewhere``.
    label
        The framework's name in messages.
    stated
        What files say in their metadata, under ``"format"``.
    is_sure
        Whether a file that states it has no paths of the model; otherwise the names tell.
    is_written
        Whether ``save_weights`` writes it, in each format that writes arrays.
    names_every_class
        Whether classes with weights of their own should define ``names_elsewhere`` for it.
    transposes
        Whether its matrices are ``(outputs, inputs)``.
    names_modules
        Whether names may consist of the names of modules, as ``dense_1/kernel``.
    """

    is_sure = True
    is_written = names_every_class = transposes = names_modules = False

    def __init__(self, name: str, label: str = "", stated: str = "") -> None:
        self.name = name
        self.label = label or name
        self.stated = stated or name

    def plain(self, name: str) -> str:
        """Return a name with "/" between its parts."""
        return plain(name)

    def numbered(self, index: int) -> str:
        """Return the name of a variable by its place in a layer, or ""."""
        return ""

    def further_names(
        self, module: Module, leaves: Sequence[tuple[str, Variable | Module]]
    ) -> Mapping[int, Mapping[str, int]]:
        """Return more names of what is directly in a module, by identity, with their ranks."""
        return {}

    def leaves_out(self, name: str) -> str:
        """Return why an array is not for any variable, or ""."""
        return ""

    def recognised(
        self, model: Module, arrays: Arrays, renamed: Mapping[str, Renamed]
    ) -> tuple[Names, frozenset[str]] | None:
        """Return the model's names, and which arrays have the model's axes; None if not its own."""
        return None

    def features(self, model: Module, kernels: Sequence[Variable]) -> Features:
        """Return the features in another order; ``kernels`` are those of images."""
        return NO_FEATURES

    def suspected(
        self, widths: Iterable[int], kernels: Iterable[Variable], variables: Iterable[Variable]
    ) -> set[int]:
        """Return the numbers of inputs whose features may be in another order."""
        return set()

    def in_doubt(self, names: Sequence[str]) -> str:
        """Return a warning about variables with features in an unknown order, or ""."""
        return ""


OWN = Layout("gradtape")


def layouts(written: bool = False) -> dict[str, Layout]:
    """Return the layouts that formats name; if ``written``, only those that can be written.

    They include the layouts of a format that another one replaces: names and axes are the model's.
    """
    known = registry()
    found = {OWN.name: OWN}
    for item in [x.item for end in known.formats for x in known.candidates("format", end)]:
        for layout in getattr(item, "layouts", ()):
            each = layout if isinstance(layout, Layout) else Layout(layout)
            if each.is_written or hasattr(item, "write") or not written:
                found[each.name] = each if each is layout else found.get(each.name, each)
    return dict(sorted(found.items()))


def plain(name: str) -> str:
    """Return a name with "/" between its parts."""
    return re.sub(r"[.\\]", "/", name)
