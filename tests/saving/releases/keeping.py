"""Many small arrays in one small file, and how close two of them must be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from .contents import Arrays

#: By the size of a real number, relative to the largest element, as ``gradtape verify`` has it:
#: machines and libraries round differently. What rounding leaves of sums that cancel is at most
#: ROUNDING times the last place of the largest gradient of the same call.
TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-9, 16: 1e-9}
ROUNDING = 128


def keep(path: Path, arrays: Arrays) -> None:
    """Write arrays: their bytes one after the other, and an index."""
    index = [[name, x.dtype.str, list(x.shape)] for name, x in arrays.items()]
    data = b"".join(np.ascontiguousarray(x).tobytes() for x in arrays.values())
    text = json.dumps(index).encode()
    parts = {"index": np.frombuffer(text, "uint8"), "data": np.frombuffer(data, "uint8")}
    np.savez_compressed(path, **parts)


def kept(path: Path) -> Arrays:
    """Read them."""
    with np.load(path) as file:
        index, data = json.loads(file["index"].tobytes()), file["data"].tobytes()
    found, at = {}, 0
    for name, dtype, shape in index:
        count = int(np.prod(shape, dtype=int))
        found[name] = np.frombuffer(data, dtype, count, at).reshape(shape)
        at += found[name].nbytes
    assert at == len(data)
    return found


def differences(found: Arrays, wanted: Arrays) -> list[str]:
    """Tell which arrays are missing, of another shape or type, or not close."""
    told = [f"{name} is missing" for name in sorted(wanted.keys() - found.keys())]
    told += [f"{name} is new" for name in sorted(found.keys() - wanted.keys())]
    scales: dict[str, float] = {}
    for name, want in wanted.items():
        scales[_call(name)] = max(scales.get(_call(name), 0.0), _largest(want))
    for name in wanted.keys() & found.keys():
        want, got = wanted[name], found[name]
        if (want.dtype, want.shape) != (got.dtype, got.shape):
            told.append(f"{name}: {got.dtype}{got.shape} instead of {want.dtype}{want.shape}")
        elif want.dtype.kind not in "fc":
            if not np.array_equal(want, got):
                told.append(f"{name}: {got} instead of {want}")
        elif not _close(got, want, scales[_call(name)]):
            told.append(f"{name} differs by {np.max(np.abs(got - want)):.1e}")
    return told


def _call(name: str) -> str:
    """Return what the gradients of one call have in common; others are by themselves."""
    call, of, _ = name.rpartition("/gradient of ")
    return call if of else name


def _largest(array: np.ndarray) -> float:
    sizes = np.abs(array.astype("complex128" if array.dtype.kind == "c" else "float64"))
    return float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))


def _close(got: np.ndarray, want: np.ndarray, scale: float) -> bool:
    real = want.dtype.itemsize // (2 if want.dtype.kind == "c" else 1)
    absolute = TOLERANCE[real] * _largest(want) + ROUNDING * np.finfo(want.dtype).eps * scale
    return np.allclose(got, want, rtol=0.0, atol=float(absolute), equal_nan=True)
