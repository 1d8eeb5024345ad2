"""``Storage``: a container of whole files, such as HDF5, and the choice of one for a path."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from ...core.errors import PluginError, UnknownName
from ...core.extend import registry
from ..errors import SaveError
from .checked import CheckedFile, check_written, encoded
from .replace import replacing_file, replacing_folder, resolved

Array = np.ndarray[Any, Any]
Origin = str | os.PathLike[str] | bytes | bytearray | memoryview
#: The end of names whose container also holds files with any other name.
DEFAULT = ".h5"


class OpenFile(Protocol):
    """An open file, as readers see it; a context manager.

    Attributes
    ----------
    path : str
        The file's name in messages.
    length : int
        The size of the file in bytes.
    sizes : dict of str to int
        The size in memory of every dataset in bytes, by path; filled by :meth:`check`.
    texts : set of str
        The paths of the text datasets.
    """

    path: str
    length: int
    sizes: dict[str, int]
    texts: set[str]

    def __enter__(self) -> OpenFile: ...

    def __exit__(self, *error: Any) -> None: ...

    def attribute(self, name: str) -> str:
        """Return a text attribute of the root."""
        ...

    def check(self) -> None:
        """Check every object of the file, and refuse objects that files do not hold."""
        ...

    def declared(self, path: str) -> tuple[str, tuple[int, ...]]:
        """Return the dtype's name and the shape of a dataset of numbers, without reading it."""
        ...

    def array(self, path: str) -> Array:
        """Return a dataset of numbers with a verified digest."""
        ...

    def arrays(self, paths: Iterable[str]) -> dict[str, Array]:
        """Return several datasets of numbers with verified digests."""
        ...

    def text(self, path: str) -> str:
        """Return a text dataset with a verified digest."""
        ...


class Stored:
    """A file that a container has opened; :meth:`Storage.read` returns it.

    Attributes
    ----------
    attributes
        The texts of its root, by name.

    Examples
    --------
    >>> class Opened(gt.saving.Stored):
    ...     def __init__(self, attributes, arrays):
    ...         self.attributes, self.held = attributes, arrays
    ...
    ...     def declared(self):
    ...         return ((path, x.dtype.name, x.shape) for path, x in self.held.items())
    ...
    ...     def read(self, path):
    ...         return self.held[path]
    >>> list(Opened({}, {"/w": gt.ones((2, 3)).numpy()}).declared())
    [('/w', 'float32', (2, 3))]
    """

    attributes: Mapping[str, str]

    def declared(self) -> Iterable[tuple[str, str, tuple[int, ...]]]:
        """Yield path, dtype's name and shape of every array, without reading any.

        The caller stops after 100,000. Raise an error for what ``write`` never writes.
        """
        raise NotImplementedError

    def read(self, path: str) -> Array:
        """Return an array in memory; its dtype and shape are compared with the declared ones."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the file."""


class Storage:
    """A container of whole files, for the hook ``gradtape_storages``.

    A file is some texts at its root, and arrays by paths such as ``/variables/dense/kernel``.
    Define :meth:`write` and :meth:`read`. gradtape does the rest, for every container: it replaces
    the old file atomically, computes digests and compares them, limits sizes before it reads, and
    refuses links and devices in a folder. One container may have several endings.

    Attributes
    ----------
    name
        Its name in messages.
    is_folder
        Whether a file of it is a folder. False by default.
    compressions
        The names that ``gradtape.save(compression=...)`` takes. None by default.

    Examples
    --------
    >>> hdf5 = gt.registry().storages[".h5"]
    >>> hdf5.name, hdf5.is_folder, hdf5.compressions
    ('HDF5', False, ('gzip',))
    """

    name = ""
    is_folder = False
    compressions: Collection[str] = ()

    def write(
        self,
        path: str,
        attributes: Mapping[str, str],
        arrays: Mapping[str, Array],
        compression: str | None = None,
    ) -> None:
        """Write a new file.

        Parameters
        ----------
        path
            A temporary path: an empty folder, or a file that does not exist.
        attributes
            ASCII texts of the root, by name.
        arrays
            NumPy arrays by path: contiguous, of booleans, integers, floats or complex numbers, with
            any number of dimensions and possibly without elements.
        compression
            One of ``compressions``, or ``None``.
        """
        raise NotImplementedError

    def read(self, path: str) -> Stored:
        """Open a file, which is untrusted.

        Parameters
        ----------
        path
            A file, or a folder without links and devices in it.

        Returns
        -------
        Stored
            It must not run or follow anything that is in the file, and must not need more memory
            than the arrays that it declares.
        """
        raise NotImplementedError

    def recognises(self, path: str) -> bool:
        """Return whether what is at a path looks like a file of this container.

        By default, whether it is a folder, if files of this container are folders. A container that
        does not define this reads only files with its endings.
        """
        return os.path.isdir(path) if self.is_folder else os.path.isfile(path)

    # -- what gradtape calls -----------------------------------------------------------------------

    def target(self, path: Any) -> str:
        """Return the absolute path of a file without links; raise ``SaveError`` if it is none."""
        return resolved(path, folder=self.is_folder)

    def check(
        self, attributes: Mapping[str, str], texts: Mapping[str, str], arrays: Mapping[str, Array]
    ) -> None:
        """Raise the error that :meth:`save` would raise for the contents, without writing."""
        encoded(attributes, texts, arrays)

    def save(
        self,
        path: Any,
        attributes: Mapping[str, str],
        texts: Mapping[str, str],
        arrays: Mapping[str, Array],
        compression: str | None = None,
    ) -> None:
        """Write a file with digests, completely or not at all.

        Parameters
        ----------
        path
            The target.
        attributes
            ASCII texts of the root.
        texts, arrays
            The datasets by path.
        compression
            One of ``compressions``, or ``None``.

        Raises
        ------
        SaveError
            If it cannot be written; the old file is then unchanged.
        """
        target = self.target(path)
        if self.is_folder and os.path.isdir(target):
            self._refuse_others(target)
        root, everything = encoded(attributes, texts, arrays)
        replacing = replacing_folder if self.is_folder else replacing_file
        with replacing(target) as place:
            try:
                self.write(place, root, everything, compression)
                check_written(self, place, root, everything)
            except SaveError as error:
                raise SaveError(f"{target}: {error}") from error
            except Exception as error:
                raise SaveError(
                    f"{target}: the container {self.name} failed with {type(error).__name__}: "
                    f"{error}"
                ) from error

    def _refuse_others(self, folder: str) -> None:
        """Refuse to replace a folder that holds something else than a file of gradtape."""
        if not os.listdir(folder):
            return
        try:
            with self.open(folder) as file:
                file.attribute("format_version")
        except Exception as error:
            raise SaveError(
                f"{folder} cannot be replaced: the folder holds something else than a file of "
                f"gradtape ({error}); remove it, or choose another name"
            ) from error

    def open(self, origin: Origin, max_bytes: int | None = None, keep_open: bool = False) -> Any:
        """Open an untrusted file; see :class:`OpenFile` for the result.

        Parameters
        ----------
        origin
            A path; for HDF5 also the bytes of a file.
        max_bytes
            The maximum memory of all datasets together; 8 GiB by default.
        keep_open
            Whether datasets are also read after the block.
        """
        return CheckedFile(self, origin, max_bytes, keep_open)


def ending_of(path: Any) -> str:
    """Return the longest end of a path that belongs to a container; empty if there is none."""
    if not isinstance(path, (str, os.PathLike)):
        return ""
    name = os.path.basename(os.fsdecode(path)).lower()
    return max((end for end in registry().storages if name.endswith(end)), key=len, default="")


def storage_of(path: Any) -> Storage:
    """Return the container in which a file is saved: by the end of its name, or HDF5."""
    known = registry()
    try:
        found: Storage = known.provided("storage", ending_of(path) or DEFAULT)
    except UnknownName as error:  # of what is here, not of a file
        raise PluginError(str(error)) from None
    return found


def open_file(origin: Origin, max_bytes: int | None = None, keep_open: bool = False) -> Any:
    """Open an untrusted file in its container: the one of its name, if that recognises the file.

    Otherwise another one that recognises it; and if there is none, the one of its name, whose error
    says what the file is.

    Parameters
    ----------
    origin, max_bytes, keep_open
        As for :meth:`Storage.open`.

    Returns
    -------
    OpenFile
        The file, to be used as a context manager.
    """
    return (recognised(origin) or storage_of(origin)).open(origin, max_bytes, keep_open)


def recognised(origin: Any) -> Storage | None:
    """Return the container that recognises a file, the one of its name first; None for bytes."""
    if isinstance(origin, (str, os.PathLike)):
        place, named = os.fsdecode(origin), storage_of(origin)
        for storage in dict.fromkeys([named, *registry().storages.values()]):
            if storage is not named and type(storage).recognises is Storage.recognises:
                continue  # it does not look at what is there
            with suppress(Exception):  # one container's mistake must not hide what the file is
                if storage.recognises(place):
                    return storage
    return None
