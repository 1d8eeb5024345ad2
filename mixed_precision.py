"""Mixed precision: layers that compute in 16 bits and keep their variables in 32; TF32.

>>> with gt.mixed_precision.policy("mixed_float16"):
...     layer = gt.layers.Dense(2)
>>> layer(gt.ones((1, 3))).dtype.name, layer.kernel.dtype.name
('float16', 'float32')
"""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from .core import extend  # noqa: F401
from .core.base.dtypes import (
    Policy,
    get_matmul_precision,
    get_policy,
    matmul_precision,
    policy,
    set_matmul_precision,
    set_policy,
)
from .public import publish
from .training import loss_scaling

LossScaleOptimizer = loss_scaling.LossScaleOptimizer

__all__ = [
    "LossScaleOptimizer",
    "Policy",
    "get_matmul_precision",
    "get_policy",
    "matmul_precision",
    "policy",
    "set_matmul_precision",
    "set_policy",
]

publish(__name__)
