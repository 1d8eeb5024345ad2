"""Kinks, infinities and zeros: what an op's gradients are where a slope is not one number.

It imports no gradtape, so that whoever measures another library can read it without.
``docs/make_kinks.py`` makes docs/kinks.md of it; the fuzzer ``traps`` takes its points as known.
"""

from __future__ import annotations

from .endless import ENDLESS
from .finite import FINITE
from .kink import Interval, Kink

__all__ = ["KINKS", "Interval", "Kink"]

KINKS: list[Kink] = [*FINITE, *ENDLESS]
