"""Kernels of CUDA C that draw random numbers from Philox as NumPy does, for keys on the device.

A number that takes one word of the stream is made by one kernel. Where words are rejected, it is
not known at which word a number begins. So each thread computes the number that would begin at its
word, and how many words it would take; almost all take one. Where no number reaches past a word,
one certainly begins there, so that the beginnings are found from a few words before. A second
kernel puts the numbers in their order.

There are more words than numbers, by a spare that is used up with a probability below 1e-30 for
each draw. That a number takes more than 32 words, or that no certain beginning is found in the 64
words before, has a probability below 1e-20 for each number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..writing.formulas import BFLOAT, HALF, literal, memory_type, stored
from ..writing.source import BLOCK, blocks_for
from . import texts
from .samplers import Sampler

#: The minimum and maximum of words that a block of threads draws from, and the number of those that
#: it looks at before them. It keeps as many after them in shared memory.
_LEAST_TILE, _MOST_TILE, _BACK = 128, 1024, 64


class Kernel(NamedTuple):
    """One kernel of a drawing.

    Attributes
    ----------
    label
        A short description, for profiles.
    text
        Its text, whose function is called ``KERNEL``.
    arrays
        The names of its arrays; ``out`` is the result, and others than ``key`` are scratch memory.
    by_tiles
        Whether each block of threads has one tile, rather than any number of results.
    """

    label: str
    text: str
    arrays: tuple[str, ...]
    by_tiles: bool


class Sizes(NamedTuple):
    """The sizes of a drawing.

    Attributes
    ----------
    keys, each
        The numbers of keys, and of numbers for each.
    tile, tiles
        The number of words in a tile, and that of tiles for each key. A power of 2, and as small as
        one tile may be, so that examples with few numbers take little time.
    reserve
        The number of numbers for each key with those to draw again.
    """

    keys: int
    each: int
    tile: int
    tiles: int
    reserve: int

    def values(self) -> dict[str, int]:
        """Return the numbers that kernels need, by name."""
        return {
            "keys": self.keys,
            "count": self.each,
            "tiles": self.tiles,
            "reserve": self.reserve,
        }


def sizes_for(sampler: Sampler, keys: int, count: int) -> Sizes:
    """Return the sizes of a drawing with enough words.

    Parameters
    ----------
    sampler
        How numbers are made.
    keys
        The number of keys.
    count
        The number of numbers for each key.
    """
    if sampler.plain:
        return Sizes(keys, count, _LEAST_TILE, 0, count)
    reserve = _with_spare(count, sampler.repeated) if sampler.again else count
    words = _with_spare(reserve, sampler.extra)
    tile = min(max(_LEAST_TILE, 1 << (words - 1).bit_length()), _MOST_TILE)
    return Sizes(keys, count, tile, -(-words // tile), reserve)


def _with_spare(count: int, rate: float) -> int:
    return ceil(count + count * rate + 20 * sqrt(count * rate) + 64)


def scratch_for(sampler: Sampler, sizes: Sizes) -> dict[str, tuple[int, Any]]:
    """Return the size and dtype of each scratch array."""
    if sampler.plain or (sizes.tiles == 1 and not sampler.again):
        return {}
    number = {"float": "float32", "double": "float64"}.get(sampler.number, "int64")
    tiles, draws = sizes.keys * sizes.tiles, sizes.keys * sizes.reserve
    words = tiles * sizes.tile
    found = {"made": (words, number), "totals": (tiles, "uint64")}
    if sampler.again:
        found |= {"ranks": (words, "uint16")}
        found |= {"drawn": (draws, number), "next": (draws, "int64")}
    return {name: (size, np.dtype(kind)) for name, (size, kind) in found.items()}


def blocks_of(kernel: Kernel, sampler: Sampler, sizes: Sizes) -> int:
    """Return the number of blocks of threads that a kernel needs."""
    if kernel.by_tiles:
        return sizes.keys * sizes.tiles
    per = _per(sampler) if sampler.plain else 1
    return blocks_for(sizes.keys * -(-sizes.each // per))


#: The key at ``b`` among keys that lie side by side.
KEYS_SIDE_BY_SIDE = "const U64 k0 = (U64)key[2 * b], k1 = (U64)key[2 * b + 1];"


def keys_at(shape: Sequence[int], offset: int, strides: Sequence[int]) -> str:
    """Return the lines that read the key at ``b`` among keys with strides.

    Parameters
    ----------
    shape
        The shape of the keys, with a last axis of 2.
    offset
        The position of the first one.
    strides
        The strides along each axis.
    """
    lines = [f"long long at_key = {offset};"]
    if len(shape) > 1:
        lines.append("long long rest = b;")
        for n, stride in reversed([*zip(shape[:-1], strides[:-1], strict=True)]):
            lines.append(f"at_key += rest % {n} * ({stride}); rest /= {n};")
    lines.append(f"const U64 k0 = (U64)key[at_key], k1 = (U64)key[at_key + ({strides[-1]})];")
    return " ".join(lines)


class _Setting(NamedTuple):
    """What the kernels of a drawing have in common."""

    sampler: Sampler
    dtype: np.dtype[Any]
    key_dtype: np.dtype[Any]
    the_key: str
    tile: int
    numbers: tuple[tuple[str, int], ...] | None


@lru_cache(maxsize=256)
def kernels(
    sampler: Sampler,
    dtype: np.dtype[Any],
    key_dtype: np.dtype[Any],
    tile: int,
    alone: bool,
    the_key: str = KEYS_SIDE_BY_SIDE,
    numbers: tuple[tuple[str, int], ...] | None = None,
) -> tuple[Kernel, ...]:
    """Return the kernels of a drawing, in order.

    Parameters
    ----------
    sampler
        How numbers are made.
    dtype, key_dtype
        The dtypes of the results and of the keys.
    tile
        The number of words in a tile.
    alone
        Whether one tile has all numbers of a key.
    the_key
        The lines that read the key at ``b``.
    numbers
        The values of ``parameters``; if not given, they are parameters of the kernels.
    """
    made, label = _Setting(sampler, dtype, key_dtype, the_key, tile, numbers), sampler.label
    if sampler.plain:
        return (_kernel(made, label, "key out", texts.WORDS_TO_NUMBERS, by_tiles=False),)
    if sampler.again:
        keep = texts.KEEP + texts.KEEP_RANK
        trials = texts.TRIALS.replace("KEEP", keep) + texts.COUNT
        return (
            _kernel(made, label, "key made totals ranks", trials),
            _kernel(made, f"{label}_order", "made totals ranks drawn next", texts.ORDER),
            _kernel(made, f"{label}_again", "drawn next out", texts.REDRAW, by_tiles=False),
        )
    if alone:
        trials = texts.TRIALS.replace("KEEP", texts.KEEP_RESULT)
        return (_kernel(made, label, "key out", trials),)
    trials = texts.TRIALS.replace("KEEP", texts.KEEP) + texts.COUNT
    return (
        _kernel(made, label, "key made totals", trials),
        _kernel(made, f"{label}_order", "made totals out", texts.ORDER),
    )


def _kernel(made: _Setting, label: str, arrays: str, body: str, by_tiles: bool = True) -> Kernel:
    sampler = made.sampler
    types = {
        "key": f"const {memory_type(made.key_dtype)}",
        "out": memory_type(made.dtype),
        "made": sampler.number,
        "totals": "U64",
        "ranks": "unsigned short",
        "drawn": sampler.number,
        "next": "long long",
    }
    names = tuple(arrays.split())
    given = [f"{types[name]}* {name}" for name in names]
    values, lines = parameters(sampler), ""
    if made.numbers is None:
        given += [f"{kind} {name}" for name, kind in values.items()]
    else:
        told = dict(made.numbers)
        lines = "".join(
            f"    const {kind} {name} = {_integer(told[name], kind)};\n"
            for name, kind in values.items()
        )
    head = f'extern "C" __global__ void KERNEL({", ".join(given)}) {{\n'
    text = _prelude(made, "held" in body) + head + lines + _filled(made, body) + "}\n"
    return Kernel(label, text, names, by_tiles)


def _filled(made: _Setting, body: str) -> str:
    """Return a body with the texts of a sampler in place of the words in capitals."""
    sampler, chained = made.sampler, bool(made.sampler.functions)
    result = sampler.made if sampler.plain else sampler.result
    words = {
        "TRY": texts.TRY[chained],
        "FIND": texts.FIND[chained],
        "MAKE": texts.MAKE[chained],
        "PUT": texts.PUT_DRAW if sampler.again else texts.PUT_RESULT,
        "WRITE": texts.WRITE_APART if sampler.place else texts.WRITE,
        # those that the ones above have in them
        "THE_KEY": made.the_key,
        "KEPT": sampler.kept,
        "MADE": sampler.made,
        "AGAIN": sampler.again or "false",
        "RESULT": stored(made.dtype, result),
        "PLACE": sampler.place,
    }
    for word, text in words.items():
        body = body.replace(word, text)
    return body


def parameters(sampler: Sampler) -> dict[str, str]:
    """Return the C types of the numbers in the kernels of a sampler, by name, in order."""
    sizes = Sizes(1, 1, 1, 1, 1).values()
    return {**dict.fromkeys(sizes, "long long"), **dict(sampler.bounds)}


def _integer(value: int, kind: str) -> str:
    text = literal(value, np.uint64 if kind.startswith("unsigned") else np.int64)
    assert text is not None
    return text


def _per(sampler: Sampler) -> int:
    """Return the number of words that Philox makes at once."""
    return 256 // sampler.bits


def _prelude(made: _Setting, words: bool) -> str:
    """Return the lines before a kernel, with the functions that draw if it has ``words``."""
    sampler, chained = made.sampler, bool(made.sampler.functions)
    sizes = {
        "PER": _per(sampler),
        "BLOCK": BLOCK,
        "TILE": made.tile,
        "BACK": _BACK if chained else 0,
        "LENGTH": made.tile + 2 * _BACK if chained else made.tile,
    }
    word = "unsigned long long" if sampler.bits == 64 else "unsigned int"
    short = {"float16": HALF, "bfloat16": BFLOAT}.get(made.dtype.name, "")
    lines = [
        "typedef unsigned long long U64;",
        f"typedef {word} Word;",
        f"typedef {sampler.number} Number;",
        f"typedef {memory_type(made.dtype)} Result;",
        "struct __align__(16) Pack { U64 low, high; };",
        f"static const int {', '.join(f'{name} = {n}' for name, n in sizes.items())};",
    ]
    text = short + "\n".join(lines) + "\n" + texts.PHILOX
    return text + (sampler.functions if words else "")
