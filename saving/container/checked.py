"""``CheckedFile``: an untrusted file in any container, checked before any of it is used."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import BackendUnavailable
from ..errors import DamagedFile, FileMissing, LoadError, NotAGradtapeFile, SaveError, UnsafeFile
from . import limits
from .digests import DIGESTS, SIZE, digest_of_bytes

if TYPE_CHECKING:
    from .storage import Storage

Array = np.ndarray[Any, Any]
# The root's attribute with the paths of texts, which are arrays of bytes.
_TEXTS = "texts"
# The files in a folder: several for each array and each group.
_MOST_FILES = 8 * limits.MAX_OBJECTS


def encoded(
    attributes: Mapping[str, str], texts: Mapping[str, str], arrays: Mapping[str, Array]
) -> tuple[dict[str, str], dict[str, Array]]:
    """Return the attributes and arrays of a file, with its texts and digests among them.

    Raises
    ------
    SaveError
        If a text is empty or too long.
    """
    found: dict[str, Array] = {}
    digests = {}
    for path, text in texts.items():
        data = np.frombuffer(text.encode(), np.uint8)
        if not 0 < data.size <= limits.MAX_TEXT:
            raise SaveError(f"{path}: a text of {data.size:,} bytes cannot be saved")
        found[path] = data
        digests[path] = _digest(path, "text", data)
    for path, array in arrays.items():
        plain = np.asarray(array, order="C")
        found[path] = plain.astype(plain.dtype.newbyteorder("="), copy=False)
        digests[path] = _digest(path, plain.dtype.name, found[path])
    table = b"".join(digests[path] for path in sorted(digests))
    found[DIGESTS] = np.frombuffer(table, np.uint8).reshape(-1, SIZE)
    own = _digest(DIGESTS, "uint8", found[DIGESTS])
    listed = json.dumps(list(texts), separators=(",", ":"))
    return {**attributes, "digest": own.hex(), _TEXTS: listed}, found


def _digest(path: str, kind: str, array: Array) -> bytes:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    data = np.ascontiguousarray(little).reshape(-1).view(np.uint8).data
    return digest_of_bytes(path, kind, array.shape, data)


def check_written(
    storage: Storage, path: str, attributes: Mapping[str, str], arrays: Mapping[str, Array]
) -> None:
    """Refuse a new file that does not hold what it should: a container may lack dtypes or names.

    Raises
    ------
    SaveError
        If there is no file, or something in it is missing, or declared differently.
    """
    if not os.path.exists(path):
        raise SaveError(f"the container {storage.name} wrote nothing at the path that it received")
    stored = storage.read(path)
    try:
        wrong = [name for name, text in attributes.items() if stored.attributes.get(name) != text]
        wanted = {name: (name, x.dtype.name, tuple(x.shape)) for name, x in arrays.items()}
        found = {str(each[0]): (each[0], each[1], tuple(each[2])) for each in stored.declared()}
        wrong += [x for x in {**wanted, **found} if wanted.get(x) != found.get(x)]
    finally:
        stored.close()
    if wrong:
        raise SaveError(
            f"the container {storage.name} did not store {', '.join(map(str, wrong[:3]))} as it is"
        )


class CheckedFile:
    """An open file. Before :meth:`check`, only the root's attributes can be read.

    Parameters
    ----------
    storage
        Its container.
    origin
        A path.
    max_bytes
        The maximum memory of all datasets together; 8 GiB by default. Everything read is counted,
        as often as it is read.
    keep_open
        Whether datasets are also read after the block.

    Attributes
    ----------
    path, length, sizes, texts
        As in :class:`OpenFile`.
    """

    def __init__(
        self, storage: Storage, origin: Any, max_bytes: int | None = None, keep_open: bool = False
    ) -> None:
        if not isinstance(origin, (str, os.PathLike)):
            raise LoadError(f"<bytes>: {storage.name} is read from paths alone")
        self.path = os.fsdecode(origin)
        self.sizes: dict[str, int] = {}
        self.texts: set[str] = set()
        self._storage = storage
        self._max_bytes = limits.MAX_BYTES if max_bytes is None else int(max_bytes)
        self._read_bytes = 0
        self._keep_open = keep_open
        self._declared: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._digests: dict[str, bytes] = {}
        with self._guarded():
            self.length = _length(self.path, storage)
            self._stored = storage.read(self.path)

    def __enter__(self) -> CheckedFile:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None or not self._keep_open:
            self._stored.close()
        if isinstance(error, LoadError) and not str(error).startswith(self.path):
            raise type(error)(f"{self.path}: {error}") from None

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turn the errors of a container into errors about the file."""
        try:
            yield
        except LoadError as error:
            if str(error).startswith(self.path):
                raise
            raise type(error)(f"{self.path}: {error}") from None
        except MemoryError:
            raise UnsafeFile(f"{self.path}: it does not fit into memory") from None
        except BackendUnavailable:  # of what is here, not of the file
            raise
        except Exception as error:
            raise DamagedFile(
                f"{self.path}: it cannot be read as {self._storage.name} "
                f"({type(error).__name__}: {error})"
            ) from error

    def attribute(self, name: str) -> str:
        """Return a text attribute of the root."""
        with self._guarded():
            found = self._stored.attributes.get(name)
        if type(found) is not str:
            raise NotAGradtapeFile(
                f"{self.path}: no attribute {name!r}: not a file that gradtape wrote"
            )
        return found

    def check(self) -> None:
        """Check every object of the file, and refuse objects that files do not hold."""
        with self._guarded():
            length = 0
            for path, dtype, shape in self._stored.declared():
                _check_path(path)
                length += len(path)
                if len(self._declared) >= limits.MAX_OBJECTS or length > limits.MAX_PATHS:
                    raise UnsafeFile(f"more than {limits.MAX_OBJECTS} objects, or too long paths")
                if path in self._declared:
                    raise UnsafeFile(f"{path} is there twice")
                self._declared[path] = _checked(path, dtype, shape)
            self._find_texts()
            self.sizes = {
                path: prod(shape) * limits.ITEMSIZES[dtype]
                for path, (dtype, shape) in self._declared.items()
                if path != DIGESTS
            }
            limits.check_claims(sum(self.sizes.values()), self._max_bytes, self.length)
            self._read_digests()

    def _find_texts(self) -> None:
        listed = json.loads(self.attribute(_TEXTS))
        if type(listed) is not list or any(type(path) is not str for path in listed):
            raise DamagedFile("its list of texts is none")
        for path in listed:
            dtype, shape = self._declared.get(path, ("", ()))
            if dtype != "uint8" or len(shape) != 1 or not 0 < shape[0] <= limits.MAX_TEXT:
                raise UnsafeFile(
                    f"{path[:80]}: a text is one string of at most {limits.MAX_TEXT:,} bytes"
                )
        self.texts = set(listed)

    def _read_digests(self) -> None:
        count = len(self.sizes)
        if self._declared.get(DIGESTS) != ("uint8", (count, SIZE)):
            raise DamagedFile(f"{DIGESTS} is not a table of {count} digests")
        table = self._read(DIGESTS)
        if _digest(DIGESTS, "uint8", table).hex() != self.attribute("digest"):
            raise DamagedFile("the table of digests does not match its own")
        for i, path in enumerate(sorted(self.sizes)):
            self._digests[path] = table[i].tobytes()

    def declared(self, path: str) -> tuple[str, tuple[int, ...]]:
        """Return the dtype's name and the shape of a dataset of numbers, without reading it."""
        if path not in self.sizes:
            raise DamagedFile(f"{self.path}: {path[:200]!r}: this dataset is missing")
        if path in self.texts:
            raise DamagedFile(f"{self.path}: {path}: not an array of numbers")
        return self._declared[path]

    def array(self, path: str) -> Array:
        """Return a dataset of numbers with a verified digest."""
        return self.arrays([path])[path]

    def arrays(self, paths: Iterable[str]) -> dict[str, Array]:
        """Return several datasets of numbers with verified digests."""
        found = {}
        for path in dict.fromkeys(paths):
            dtype, _ = self.declared(path)
            with self._guarded():
                found[path] = self._verified(path, dtype)
        return found

    def text(self, path: str) -> str:
        """Return a text dataset with a verified digest."""
        if path not in self.texts:
            raise DamagedFile(f"{self.path}: {path[:200]}: this text is missing")
        with self._guarded():
            return self._verified(path, "text").tobytes().decode("utf-8")

    def _verified(self, path: str, kind: str) -> Array:
        size = self.sizes[path]
        if self._read_bytes + size > self._max_bytes:
            raise UnsafeFile(
                f"its datasets, as often as they are used, take more than {self._max_bytes:,} "
                "bytes; raise max_bytes if you trust the file"
            )
        array = self._read(path)
        if array.dtype == np.bool_ and np.any(array.view(np.uint8) > 1):
            raise DamagedFile(f"{path}: a boolean is neither 0 nor 1")
        if _digest(path, kind, array) != self._digests[path]:
            raise DamagedFile(
                f"{path} does not match its digest: it is damaged, or another program changed it"
            )
        self._read_bytes += size
        return array

    def _read(self, path: str) -> Array:
        dtype, shape = self._declared[path]
        found = self._stored.read(path)
        if not isinstance(found, np.ndarray) or (found.dtype.name, found.shape) != (dtype, shape):
            raise DamagedFile(f"{path} is read as something else than {dtype} {list(shape)}")
        # NumPy's own dtype object, which fast paths recognise by identity
        return np.asarray(found, limits.DTYPES[dtype], order="C")


def _check_path(path: Any) -> None:
    if type(path) is not str or not path.startswith("/") or path.count("/") > limits.MAX_DEPTH:
        raise UnsafeFile(f"an array is called {path!r:.80}")
    for segment in path[1:].split("/"):
        if not limits.SEGMENT.match(segment):
            raise UnsafeFile(f"{path[:80]!r}: a part of this path is called {segment[:60]!r}")


def _checked(path: str, dtype: Any, shape: Any) -> tuple[str, tuple[int, ...]]:
    """Return a declared dtype and shape, if files may have them."""
    if dtype not in limits.DTYPES:
        raise UnsafeFile(f"{path} holds no numbers of a known dtype, but {dtype!r:.40}")
    sizes = tuple(shape)
    if len(sizes) > limits.MAX_RANK or any(type(n) is not int or n < 0 for n in sizes):
        raise UnsafeFile(f"{path} has the shape {sizes!r:.80}")
    # an array without elements can have sizes whose product no machine can hold
    if max(sizes, default=0) >= 2**48 or prod(filter(None, sizes)) >= 2**58:
        raise UnsafeFile(f"{path} has the shape {sizes!r:.80}")
    return dtype, sizes


def _length(path: str, storage: Storage) -> int:
    """Return the bytes of a file, or of all files in a folder; refuse what is neither.

    Raises
    ------
    LoadError
        If there is nothing, or something else; or a folder has links, devices or too many files.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise FileMissing(f"{path}: there is no such file") from None
    if not (stat.S_ISDIR if storage.is_folder else stat.S_ISREG)(mode):
        wanted = "folder" if storage.is_folder else "file"
        raise NotAGradtapeFile(f"{path}: not a {wanted}, which {storage.name} is")
    if not storage.is_folder:
        return os.path.getsize(path)
    total = count = 0
    folders = [path]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                count += 1
                if count > _MOST_FILES:
                    raise UnsafeFile(f"{path}: more than {_MOST_FILES:,} files")
                if not entry.name.isprintable():  # libraries warn of it, as it is
                    raise UnsafeFile(f"{path}: a file in it is called {entry.name!r:.80}")
                state = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(state.st_mode):
                    folders.append(entry.path)
                elif stat.S_ISREG(state.st_mode):
                    total += state.st_size
                else:
                    raise UnsafeFile(f"{entry.path} is neither a file nor a folder")
    return total
