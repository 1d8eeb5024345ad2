"""Rules of ops for CuPy beyond elementwise ones: their steps are views, joins and products."""

from __future__ import annotations

from ....planned import Rule
from .arrangements import RULES as ARRANGEMENTS
from .convolution import RULES as CONVOLUTIONS

#: The rules by op name; each receives nodes whose inputs are all arrays.
RULES: dict[str, Rule] = {**ARRANGEMENTS, **CONVOLUTIONS}
