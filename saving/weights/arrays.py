"""The contents of a weights file: arrays by name, read on demand."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import numbers_instead, wider_dtype
from ..errors import DamagedFile
from .layouts import layouts

# What is in front of the names of a model in a checkpoint, of fit for one.
_MODEL = "model/"


class Entry(NamedTuple):
    """An array that has not been read yet.

    ``stored`` names the storage type of its numbers if it is not the dtype: ``"bfloat16"``.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], np.ndarray[Any, Any]]
    stored: str = ""


class Arrays:
    """The arrays of a file.

    Attributes
    ----------
    path
        The file's name in messages.
    entries
        The arrays by name.
    aliases
        Further names of arrays, with the name in ``entries`` of each.
    left_out
        Contents that are not weights of a model, with the reasons.
    layout
        Which framework's names and axes these are; ``""`` if only the names can tell.
    close
        A function to call when everything is read.
    is_checkpoint
        Whether a model is one of the objects in it, by name.
    spellings
        Other names that the names in ``entries`` may stand for, if they lead nowhere themselves.
    """

    def __init__(
        self,
        path: str,
        entries: Mapping[str, Entry],
        aliases: Mapping[str, str] | None = None,
        left_out: Mapping[str, str] | None = None,
        layout: str = "",
        close: Callable[[], Any] = lambda: None,
        together: Callable[[list[str]], dict[str, np.ndarray[Any, Any]]] | None = None,
        *,
        is_checkpoint: bool = False,
    ) -> None:
        self.path = path
        self.entries = dict(entries)
        self.aliases = dict(aliases or {})
        self.left_out = dict(left_out or {})
        self.layout = layout
        self.close = close
        self.is_checkpoint = is_checkpoint
        self.spellings: Mapping[str, list[str]] = {}
        self._together = together
        self._kept: dict[str, np.ndarray[Any, Any]] = {}

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray[Any, Any]]:
        """Return arrays by name, read together if that is faster."""
        unique = list(dict.fromkeys(names))
        unread = [name for name in unique if name not in self._kept]
        if self._together is not None:
            found = self._together(unread)
        else:
            found = {name: self.entries[name].read() for name in unread}
        return {name: found[name] if name in found else self._kept[name] for name in unique}

    def look_at(self, name: str) -> np.ndarray[Any, Any]:
        """Return an array, and keep it: a file's arrays are read once."""
        if name not in self._kept:
            self._kept.update(self.read([name]))
        return self._kept[name]

    def of_model(self) -> Arrays:
        """Return what a checkpoint holds under ``model``, or everything if it has no such name."""
        names = {x: x.removeprefix(_MODEL) for x in self.entries if x.startswith(_MODEL)}
        if not names:
            return self
        origin = {new: old for old, new in names.items()}

        def together(wanted: list[str]) -> dict[str, np.ndarray[Any, Any]]:
            found = self.read([origin[name] for name in wanted])
            return {name: found[origin[name]] for name in wanted}

        return Arrays(
            self.path,
            {new: self.entries[old] for old, new in names.items()},
            {
                x.removeprefix(_MODEL): names[to]
                for x, to in self.aliases.items()
                if x.startswith(_MODEL) and to in names
            },
            {x: "of the run, not of its model" for x in self.entries if x not in names},
            self.layout,
            self.close,
            together,
        )

    def __enter__(self) -> Arrays:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def layout_of(metadata: Mapping[str, str]) -> str:
    """Return the layout that a file's metadata name."""
    found = metadata.get("format", "")
    return next((x.name for x in layouts().values() if x.stated == found), found)


def of_arrays(arrays: Mapping[str, Any]) -> Arrays:
    """Return arrays in memory in the form of a file's."""
    entries = {}
    for name, value in arrays.items():
        if isinstance(value, Mapping):
            raise TypeError(
                f"load_weights: {name!r} is a dictionary in the dictionary; if it holds the "
                f"weights, pass only this part: load_weights(weights[{name!r}], model)"
            )
        try:
            array = np.asarray(_readable(value))
        except (TypeError, ValueError, RuntimeError) as error:  # PyTorch's, for its own reasons
            raise TypeError(
                f"load_weights: {name!r} ({type(value).__name__}) cannot become a NumPy array: "
                f"{error}"
            ) from error
        stored = _small(value)
        wide = wider_dtype(array.dtype)
        if wide is not None:
            array = array.astype(wide)
        elif array.dtype.kind not in "biufc":
            raise TypeError(
                f"load_weights: {name!r} is not an array of numbers: its dtype is {array.dtype}"
                f"{numbers_instead(value, array)}"
            )
        entries[str(name)] = Entry(array.shape, array.dtype, array.copy, stored)
    return Arrays("the given arrays", entries)


def of_lazy(arrays: Mapping[str, Any]) -> Arrays:
    """Return arrays that have a shape and a dtype, and are read as NumPy arrays when needed."""

    def reading(
        name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Callable[[], np.ndarray[Any, Any]]:
        def read() -> np.ndarray[Any, Any]:
            try:
                found = np.array(value)
            except Exception as error:  # a plugin's
                told = f"{type(error).__name__}: {error}"
                raise DamagedFile(f"the array {name!r} cannot be read ({told})") from error
            if (found.shape, found.dtype) != (shape, dtype):
                raise DamagedFile(
                    f"the array {name!r} is {found.dtype}{list(found.shape)}, and said to be "
                    f"{dtype}{list(shape)}"
                )
            return found.astype(wider_dtype(dtype) or dtype, copy=False)

        return read

    entries = {}
    for name, value in arrays.items():
        shape, dtype = tuple(map(operator.index, value.shape)), np.dtype(value.dtype)
        wide = wider_dtype(dtype)
        if wide is None and dtype.kind not in "biufc":
            raise TypeError(f"{name!r} is not an array of numbers: its dtype is {dtype}")
        read = reading(name, value, shape, dtype)
        entries[str(name)] = Entry(shape, wide or dtype, read, _small(value))
    return Arrays("the given arrays", entries, close=getattr(arrays, "close", lambda: None))


def _small(value: Any) -> str:
    """Return the name of a value's dtype if NumPy lacks it, such as ``"bfloat16"``."""
    found = re.search(r"(bfloat16|float[468]_|u?int[124]$).*", str(getattr(value, "dtype", "")))
    return found[0] if found else ""


def _readable(value: Any) -> Any:
    """Return what NumPy reads, of PyTorch's parameters and of its floats that NumPy lacks."""
    if getattr(value, "requires_grad", None) is True and callable(getattr(value, "detach", None)):
        value = value.detach()
    if str(getattr(value, "dtype", "")).startswith(("torch.bfloat16", "torch.float8")):
        return value.float()  # exact, as for files
    return value
