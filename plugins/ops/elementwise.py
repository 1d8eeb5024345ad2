"""Elementwise ops: arithmetic, powers, exponentials, trigonometry, comparisons, rounding.

A rule is named for the input that it differentiates; ``g`` is the upstream gradient.
"""

from __future__ import annotations

from typing import Any

from ...core.extend import NONDIFF, F
from .families import elementwise


# -- arithmetic ----------------------------------------------------------------------------------------

add = elementwise("add", x=lambda g: g, y=lambda g: g, doc="Return ``x + y``, elementwise.")
subtract = elementwise("subtract", x=lambda g: g, y=lambda g: -g, doc="Return ``x - y``, elementwise.")
multiply = elementwise(
    "multiply",
    x=lambda g, y: g * y,
    y=lambda g, x: g * x,
    doc="Return ``x * y``, elementwise.",
)
divide = elementwise(
    "divide",
    x=lambda g, y: g / y,
    y=lambda g, y, out: -g * (out / y),
    doc="Return ``x / y``, elementwise.",
)
negative = elementwise("negative", x=lambda g: -g, doc="Return ``-x``.")
sin = elementwise("sin", x=lambda g, x: g * F.cos(x), doc="Return the sine of ``x`` (radians).")
cos = elementwise("cos", x=lambda g, x: -g * F.sin(x), doc="Return the cosine of ``x`` (radians).")
