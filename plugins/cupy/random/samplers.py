"""Samplers: how the numbers of each distribution are made of random words, as NumPy makes them.

References
----------
Lemire, "Fast random integer generation in an interval", 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np

from ..writing.formulas import literal
from . import ziggurat
from .texts import EXPONENTIAL, NORMAL, WORDS


class Sampler(NamedTuple):
    """How the numbers of a distribution are made of words.

    Attributes
    ----------
    label
        Its name, for profiles.
    number
        The C type that they are computed in.
    bits
        The size of a word: 32 or 64.
    made, kept
        For a number of one word: the number, an expression of ``word``, and the condition under
        which the word is not rejected, if some are.
    functions
        For a number of several words: a function ``draw`` of CUDA C.
    extra
        The mean number of further words for each number, or more.
    again
        The condition under which a number ``x`` is drawn again, after all others, if there is one.
    repeated
        The mean number of further draws for each number.
    result
        The result, an expression of ``x``.
    place
        The index of result ``i`` for key ``b``, unless the results for a key lie side by side.
    bounds
        The C types of further numbers in these expressions, by name.
    """

    label: str
    number: str
    bits: int
    made: str = ""
    kept: str = ""
    functions: str = ""
    extra: float = 0.0
    again: str = ""
    repeated: float = 0.0
    result: str = "x"
    place: str = ""
    bounds: tuple[tuple[str, str], ...] = ()

    @property
    def plain(self) -> bool:
        """Whether each number takes exactly one word."""
        return not (self.functions or self.kept)


# -- distributions ---------------------------------------------------------------------------------


def _chained(table: ziggurat.Ziggurat, single: bool, draw: str, tokens: Mapping[str, str]) -> str:
    """Return the functions that draw numbers by a table."""
    kind, dtype = ("float", np.float32) if single else ("double", np.float64)
    word = "unsigned int" if single else "unsigned long long"

    def column(name: str, kind: str, values: Sequence[Any], dtype: Any) -> str:
        numbers = ", ".join(str(literal(x, dtype)) for x in values)
        return f"static __device__ const {kind} {name}[256] = {{{numbers}}};\n"

    text = WORDS + draw
    unit, unused = ("0x1p-24", "8") if single else ("0x1p-53", "11")
    start = float(table.start).hex() if not single else f"{float(np.float32(table.start)).hex()}f"
    for token, value in {"UNIT": unit, "UNUSED": unused, "START": start, **tokens}.items():
        text = text.replace(token, value)
    return (
        column("WIDTHS", kind, table.widths, dtype)
        + column("LIMITS", word, table.limits, np.uint32 if single else np.uint64)
        + column("HEIGHTS", kind, table.heights, dtype)
        + text
    )


@lru_cache
def normal(single: bool, truncated: bool = False) -> Sampler:
    """Return how normally distributed numbers are drawn.

    Parameters
    ----------
    single
        Whether they are of single precision.
    truncated
        Whether numbers beyond two standard deviations are drawn again.
    """
    inverse = 0.27366123732975827203338247596
    tokens = {
        "PLACES": "0x7fffff" if single else "0xfffffffffffffULL",
        "INVERSE": float(np.float32(inverse)).hex() if single else inverse.hex(),
    }
    return Sampler(
        "truncated_normal" if truncated else "normal",
        "float" if single else "double",
        32 if single else 64,
        functions=_chained(ziggurat.normal(single), single, NORMAL, tokens),
        extra=0.025,
        again="fabs(x) > 2" if truncated else "",
        repeated=0.05,
    )


@lru_cache
def exponential(single: bool, gumbel: bool = False) -> Sampler:
    """Return how exponentially distributed numbers are drawn.

    Parameters
    ----------
    single
        Whether they are of single precision.
    gumbel
        Whether the result is minus their logarithm.
    """
    tokens = {"SKIPPED": "1" if single else "3"}
    return Sampler(
        "gumbel" if gumbel else "exponential",
        "float" if single else "double",
        32 if single else 64,
        functions=_chained(ziggurat.exponential(single), single, EXPONENTIAL, tokens),
        extra=0.04,
        result="-log(x)" if gumbel else "x",
    )


@lru_cache
def uniform(dtype: str) -> Sampler:
    """Return how numbers in [0, 1) are drawn."""
    if dtype == "float64":
        return Sampler("uniform", "double", 64, "(double)(word >> 11) * 0x1p-53")
    made = "(float)(word >> 8) * 0x1p-24f"
    if dtype != "float32":  # rounding may reach the bound
        below = 1 - float(_epsilon(dtype)) / 2
        made = f"fminf({made}, {below.hex()}f)"
    return Sampler("uniform", "float", 32, made)


def _epsilon(dtype: str) -> float:
    return 2.0**-7 if dtype == "bfloat16" else float(np.finfo(dtype).eps)


#: New keys from a key. NumPy redraws 2 of 2**64 words: that is ignored here.
SPLIT = Sampler(
    "split",
    "long long",
    64,
    "(long long)__umul64hi(word, 0x7fffffffffffffffULL)",
    place="(i / 2 * keys + b) * 2 + i % 2",
)


def integers(low: int, high: int) -> tuple[Sampler, dict[str, int]]:
    """Return how integers are drawn, and the numbers in its expressions.

    Parameters
    ----------
    low, high
        The bounds; the second is not included.
    """
    bound = high - low
    bits = 32 if bound <= 2**32 else 64
    whole = bound == 2**bits
    below = 0 if whole else (2**bits - bound) % bound
    rate = below / 2**bits
    bounds = {
        "low": low,
        **({} if whole else {"bound": bound}),
        **({"below": below} if below else {}),
    }
    extra = 2.0 ** ceil(log2(rate / (1 - rate))) if below else 0.0
    return _integers(bits, whole, bool(below), extra), bounds


@lru_cache
def _integers(bits: int, whole: bool, some_rejected: bool, extra: float) -> Sampler:
    scaled = "__umul64hi(word, bound)" if bits == 64 else "(word * bound >> 32)"
    kept = "word * bound >= below" if bits == 64 else "(unsigned int)(word * bound) >= below"
    names = ("low", *(() if whole else ("bound",)), *(("below",) if some_rejected else ()))
    return Sampler(
        "integers",
        "long long",
        bits,
        f"(long long)((U64)low + {'word' if whole else scaled})",
        kept if some_rejected else "",
        extra=extra,
        bounds=tuple(
            (name, "long long" if name == "low" else "unsigned long long") for name in names
        ),
    )


#: Samplers by the name of the distribution, functions of a dtype.
SAMPLERS: dict[str, Callable[[str], Sampler]] = {
    "exponential": lambda dtype: exponential(dtype != "float64"),
    "gumbel": lambda dtype: exponential(dtype != "float64", gumbel=True),
    "normal": lambda dtype: normal(dtype != "float64"),
    "truncated_normal": lambda dtype: normal(dtype != "float64", truncated=True),
    "uniform": uniform,
}


@lru_cache
def sampler_of(name: str, dtype: np.dtype[Any]) -> Sampler | None:
    """Return how numbers of a distribution are made, if they can be made in a dtype."""
    known = dtype.name in ("bfloat16", "float16", "float32", "float64")
    return SAMPLERS[name](dtype.name) if known else None


def sampler_of_integers(low: int, high: int) -> tuple[Sampler | None, dict[str, int]]:
    """Return how integers are made, if there are some, and the numbers in its expressions."""
    if not -(2**63) <= low < high <= 2**63:
        return None, {}
    return integers(low, high)
