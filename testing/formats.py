"""``check_format``: writes weights in a plugin's format, reads them back, and damages the files."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gradtape as gt

from ..core.extend import (
    describe,
    hookimpl,
    lazy_module,
    register_plugin,
    registry,
    unregister_plugin,
)
from .report import REFUSED, WRONG, Findings, Report, reason_of

Array = NDArray[Any]
#: The most bytes that a file of the checks may take in memory.
_MOST = 2**30
Read = Callable[[str], Any]

DTYPES = (
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
NAMES = (
    *("kernel", "layers/0/kernel", "layers/1/kernel", "block.norm.gain", "Kernel", "a b", "größe"),
    *("x:0", "0", "_", "per-cent%20", "n" * 200),
)
_number = count(1).__next__


def check_format(
    format: str | Callable[..., Any] | Any,
    *,
    read: Read | None = None,
    show: bool = True,
) -> Report:
    """Write weights of all kinds in a format of a plugin, and read them back.

    Arrays have every dtype, no axes, no elements and other layouts; their names have slashes, dots
    and other characters. A file that is written again must be replaced as a whole. If writing fails
    the old file must be unchanged, with no other file next to it. Files that are cut off, empty,
    missing or of another kind must raise an error when they are read.

    Parameters
    ----------
    format
        The end of file names, such as ``".acme"``, for which a plugin provides the format; or what
        the hook ``gradtape_formats`` would return for it.
    read
        ``read(path)`` returns the arrays by name, or a pair of arrays and texts by name. By default
        the method ``read`` of the format, or :func:`gradtape.saving.read_weights`.
    show
        Whether to print the report.

    Returns
    -------
    Report
        What is kept, what the format refuses to write, and what it loses or damages.

    Raises
    ------
    LookupError
        If no plugin provides the format.
    TypeError
        If it is a text, which says what to call instead.

    Examples
    --------
    >>> report = gt.testing.check_format(".safetensors", show=False)
    >>> report.wrong, report.refused
    ({}, {'dtype complex128': 'SaveError: x: the safetensors format has no complex128'})
    """
    with _provided(format) as (ending, found), tempfile.TemporaryDirectory() as folder:
        title = format if isinstance(format, str) else _title(format)
        findings = Findings("format", title)
        trial = _Trial(folder, ending, found, read)
        for what, check in _checks(trial).items():
            try:
                check()
            except _Refused as refusal:
                findings.note(what, REFUSED, str(refusal))
            except Exception as error:
                findings.note(what, WRONG, reason_of(error))
            else:
                findings.note(what, "passed")
    report: Report = findings.report(show)
    return report


def _title(format: Any) -> str:
    return str(getattr(format, "__name__", type(format).__name__))


@contextmanager
def _provided(format: Any) -> Iterator[tuple[str, Any]]:
    """Give the end of file names and the format; one that is passed has an end in the block."""
    if isinstance(format, str):
        formats = registry().formats
        if format not in formats:
            raise LookupError(
                f"check_format: no plugin provides the format {format!r}; there are: "
                f"{', '.join(sorted(formats))}"
            )
        if isinstance(formats[format], str):
            raise TypeError(
                f"check_format: {format!r} is not written by save_weights: {formats[format]}"
            )
        yield format, formats[format]
        return
    ending = f".checked{_number()}"

    class Plugin:
        @staticmethod
        @hookimpl
        def gradtape_formats() -> dict[str, Any]:
            return {ending: format}

    register_plugin(Plugin(), f"gradtape.testing.format{ending}")
    try:
        yield ending, format
    finally:
        unregister_plugin(f"gradtape.testing.format{ending}")


def writer_of(path: str) -> Any:
    """Return what writes weights to a path as ``save_weights`` does; None for other paths."""
    return lazy_module("saving.records.formats").writer_of(path)


class _Refused(Exception):
    """The format says that it cannot hold something."""


class _Trial:
    """A format, and a folder for its files."""

    def __init__(self, folder: str, ending: str, format: Any, read: Read | None) -> None:
        self.folder, self.ending, self.format = folder, ending, format
        self.reader: Read = read or self._read_as_weights

    def _read_as_weights(self, path: str) -> tuple[dict[str, Array], Mapping[str, str] | None]:
        """Return what ``read_weights`` does, and the texts that the format itself reads."""
        arrays, own = gt.saving.read_weights(path), getattr(self.format, "read", None)
        if own is None:
            return arrays, None
        limited = "max_bytes" in inspect.signature(own).parameters
        found = own(path, **({"max_bytes": _MOST} if limited else {}))
        return arrays, found[1] if isinstance(found, tuple) else None

    def path(self) -> str:
        """Return the path of a new file."""
        return os.path.join(self.folder, f"weights{_number()}{self.ending}")

    def write(self, path: str, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
        """Write as ``save_weights`` does."""
        write = writer_of(path)
        if write is None:  # an object with a method
            self.format.write(path, arrays, metadata)
        else:
            write(arrays, metadata)

    def read(self, path: str) -> tuple[dict[str, Array], Mapping[str, str] | None]:
        """Return the arrays of a file, and its texts if they are read."""
        found = self.reader(path)
        arrays, metadata = found if isinstance(found, tuple) else (found, None)
        if not isinstance(arrays, Mapping):
            raise AssertionError(f"reading returned {type(arrays).__name__}, not arrays by name")
        return dict(arrays), metadata

    def both(self, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> str:
        """Write arrays, read them, and compare; return the path."""
        path = self.path()
        before = {name: np.array(x) for name, x in arrays.items()}
        try:
            self.write(path, arrays, metadata or {})
        except Exception as error:
            raise _Refused(reason_of(error)) from error
        for name, x in arrays.items():
            if x.tobytes() != before[name].tobytes():
                raise AssertionError(f"writing changes the array {name!r}")
        self.compare(path, before)
        return path

    def compare(self, path: str, want: Mapping[str, Array]) -> None:
        """Raise if a file does not hold these arrays."""
        got, _ = self.read(path)
        if got.keys() != want.keys():
            lost, new = sorted(want.keys() - got.keys()), sorted(got.keys() - want.keys())
            raise AssertionError(f"lost are the arrays {lost[:5]}, new are {new[:5]}")
        for name, right in want.items():
            mine = got[name]
            if not isinstance(mine, np.ndarray):
                raise AssertionError(f"{name!r} is {type(mine).__name__}, not a NumPy array")
            is_, wanted = describe(mine.shape, mine.dtype), describe(right.shape, right.dtype)
            if is_ != wanted or mine.dtype != right.dtype:
                raise AssertionError(f"{name!r} is {mine.dtype} {is_} instead of {wanted}")
            if mine.tobytes() != right.tobytes():
                raise AssertionError(f"{name!r} has other values")


def _checks(trial: _Trial) -> dict[str, Callable[[], object]]:
    """Return the checks by name."""
    wide = np.arange(24.0, dtype="float32").reshape(4, 6)
    arrays = {
        "no axes": np.float32(2.5) * np.ones((), "float32"),
        "no elements": np.zeros((0, 3), "float32"),
        "one dimension without elements": np.zeros(0, "float32"),
        "large": np.arange(300_000, dtype="float32"),
        "special values": np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45], "float32"),
        "columns first": np.asfortranarray(wide),
        "every second element": wide[::-1, ::2],
    }
    return {
        **{f"dtype {x}": _round_trip(trial, {"x": _of_dtype(x)}) for x in DTYPES},
        **{what: _round_trip(trial, {"first": wide, "x": array}) for what, array in arrays.items()},
        "names": _round_trip(trial, {name: np.full(2, float(i)) for i, name in enumerate(NAMES)}),
        "many arrays": _round_trip(
            trial, {f"v{i}": np.full(1 + i % 3, float(i)) for i in range(300)}
        ),
        "metadata": lambda: _metadata(trial),
        "replaced as a whole": lambda: _replaced(trial),
        "a failure leaves the old file": lambda: _fails(trial),
        "damaged files": lambda: _damaged(trial),
        "arrays outlive the file": lambda: _outlive(trial),
        "a model": lambda: _model(trial),
    }


def _round_trip(trial: _Trial, arrays: Mapping[str, Array]) -> Callable[[], object]:
    return lambda: trial.both(arrays)


def _of_dtype(dtype: str) -> Array:
    numbers = np.arange(6).reshape(2, 3) - (2 if np.dtype(dtype).kind in "ifc" else 0)
    return (numbers * (1.5 + 0.5j) if np.dtype(dtype).kind == "c" else numbers).astype(dtype)


def _metadata(trial: _Trial) -> None:
    texts = {"format": "gradtape", "note": 'two\nlines, "quotes" and größe', "empty": ""}
    path = trial.both({"x": np.ones(2)}, texts)
    _, found = trial.read(path)
    if found is not None and {name: found.get(name) for name in texts} != texts:
        raise AssertionError(f"the texts are {dict(found)} instead of {texts}")


def _replaced(trial: _Trial) -> None:
    path = trial.path()
    trial.write(path, {"old": np.ones(5000), "x": np.ones(2)}, {})
    new = {"x": np.zeros(3, "float32")}
    trial.write(path, new, {})
    trial.compare(path, new)


class _UnreadableArrays(Mapping[str, Array]):
    """Arrays by name, of which all but the first cannot be read."""

    def __iter__(self) -> Iterator[str]:
        return iter(("first", "second"))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, name: str) -> Array:
        if name == "first":
            return np.ones(20_000)
        raise OSError(f"the array {name!r} cannot be read")


def _fails(trial: _Trial) -> None:
    path, old = trial.path(), {"x": np.arange(3.0)}
    trial.write(path, old, {})
    before = set(os.listdir(trial.folder))
    try:
        trial.write(path, _UnreadableArrays(), {})
    except Exception:
        trial.compare(path, old)
        left = sorted(set(os.listdir(trial.folder)) - before)
        if left:
            raise AssertionError(f"it leaves {left} next to the file") from None
    else:
        raise AssertionError("it writes a file without an array that cannot be read")


def _damaged(trial: _Trial) -> None:
    """Check that files that are damaged, missing or of another kind raise an error."""
    path = trial.path()
    trial.write(path, {"x": np.arange(100.0), "y": np.ones(3)}, {"format": "gradtape"})
    files = [Path(path)] if os.path.isfile(path) else _files(path)
    largest = max(files, key=lambda file: file.stat().st_size)
    whole = largest.read_bytes()
    for part in (0, 1, len(whole) // 2, len(whole) - 1):
        largest.write_bytes(whole[:part])
        _must_refuse(trial, path, f"a file cut off after {part} of {len(whole)} bytes")
    largest.write_bytes(bytes(range(256)) * (len(whole) // 256 + 1))
    _must_refuse(trial, path, "a file of other bytes")
    _must_refuse(trial, trial.path(), "a missing file")


def _files(folder: str) -> list[Path]:
    return [path for path in Path(folder).rglob("*") if path.is_file()]


def _must_refuse(trial: _Trial, path: str, what: str) -> None:
    try:
        got, _ = trial.read(path)
        values = {name: np.array(x) for name, x in got.items()}
    except Exception:
        return
    raise AssertionError(f"{what} was read without an error, as {sorted(values)[:5]}")


def _outlive(trial: _Trial) -> None:
    path = trial.path()
    want = {"x": np.arange(1000.0), "y": np.ones((2, 2), "int64")}
    trial.write(path, want, {})
    got, _ = trial.read(path)
    trial.write(path, {"x": np.zeros(1000), "y": np.zeros((2, 2), "int64")}, {})
    for name, right in want.items():
        if not np.array_equal(got[name], right):
            raise AssertionError(f"{name!r} changes when the file is replaced")


def _model(trial: _Trial) -> None:
    """Save the weights of a model as users do, and read them back."""
    model = gt.layers.Sequential([gt.layers.Dense(3), gt.layers.BatchNorm()])
    model(gt.ones((2, 4)))
    path = trial.path()
    if writer_of(path) is None:
        return
    gt.save_weights(model, path)
    trial.compare(path, {name: v.numpy() for name, v in model.named_variables.items()})
