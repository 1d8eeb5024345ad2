"""Fill a small file system, save to what is left of it, and look at what is there then.

``python tests/saving/full_disks.py FOLDER`` does it to the file system that FOLDER is on, 50 times;
with ``--mount``, to a file system in memory that is mounted there first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import gradtape as gt
from gradtape.saving import SaveError

_PAGE = 4096


def model_of(size: int, value: float) -> gt.Module:
    """Return a module of ``size`` numbers, all ``value``."""
    model = gt.Module(name="m")
    model.w = gt.Variable(np.full(size, value, np.float32))
    return model


def room(folder: Path) -> int:
    """Return how many bytes are free."""
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


def leave(folder: Path, wanted: int) -> None:
    """Fill the file system until so many bytes are free."""
    filler = os.open(folder / "filler", os.O_RDWR | os.O_CREAT)
    size = 0
    try:
        step = room(folder)
        while step := min(step, (room(folder) - wanted) // _PAGE * _PAGE):
            try:
                os.posix_fallocate(filler, 0, size + step)
                size += step
            except OSError:  # a file system needs some itself for what it notes of a file
                os.ftruncate(filler, size)
                step = step // 2 // _PAGE * _PAGE
        while room(folder) < wanted and size > 0:
            size -= _PAGE
            os.ftruncate(filler, size)
        os.fsync(filler)
    finally:
        os.close(filler)


def fill(folder: Path, limits: list[int]) -> Counter[str]:
    """Return what became of saves with so many bytes free."""
    path = folder / "model.h5"
    large = model_of(100_000, 2.0)
    counts: Counter[str] = Counter(limits=len(limits))
    for limit in limits:
        gt.save(model_of(100, 1.0), path)
        before = path.read_bytes()
        leave(folder, limit)
        free = room(folder)
        counts["exactly as many bytes free"] += free == limit
        try:
            gt.save(large, path)
        except SaveError as error:
            counts["refused"] += 1
            said = "bytes are needed" in str(error) and "No space left" in str(error)
            counts["refused in words"] += said
            counts["old file intact"] += path.read_bytes() == before
            counts["space lost"] += room(folder) < free
        else:
            counts["saved"] += 1
            counts["new file whole"] += bool(np.all(gt.load(path).w.numpy() == 2.0))
        counts["litter"] += len(set(os.listdir(folder)) - {"model.h5", "filler", "lost+found"})
        os.unlink(folder / "filler")
    gt.save(large, path)
    counts["saved when there is room again"] += bool(np.all(gt.load(path).w.numpy() == 2.0))
    return counts


def fifty() -> list[int]:
    """Return limits of nothing, of 4,096 bytes, and on to more than the file takes."""
    return [_PAGE * (i if i < 10 else i * 2 + 8) for i in range(50)]


if __name__ == "__main__":
    where = Path(sys.argv[1])
    if "--mount" in sys.argv:
        options = ["-t", "tmpfs", "-o", "size=2m", "tmpfs", str(where)]
        subprocess.run(["mount", *options], check=True)
    print(json.dumps(fill(where, fifty())))
