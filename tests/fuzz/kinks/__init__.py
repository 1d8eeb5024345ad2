"""Kinks, infinities and zeros: the gradients of ops where a slope is not one number.

It does not import gradtape, so that scripts that measure other libraries can read it without.
``docs/make_kinks.py`` makes docs/kinks.md from it; the fuzzer ``traps`` treats its points as known.
"""

from __future__ import annotations

from fuzz.kinks.endless import ENDLESS
from fuzz.kinks.finite import FINITE
from fuzz.kinks.kink import Interval, Kink

__all__ = ["KINKS", "Interval", "Kink"]

KINKS: list[Kink] = [*FINITE, *ENDLESS]
