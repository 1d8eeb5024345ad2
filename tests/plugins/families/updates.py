"""New tensors with some elements changed."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from .family import Family

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
ALONG = np.array([[0, 0, 3], [1, 1, 1], [2, 0, -1]])

ERRORS = [
    (lambda x: x.at[0].set(gt.ones(3)), ValueError, r"at\[\.\.\.\]\.set.*\(3,\).*\(4,\)"),
    (lambda x: x.at[0].add(gt.ones((2, 4))), ValueError, r"add.*\(2, 4\)"),
    (lambda x: x.at[0].set(1j), TypeError, "set.*float64.*complex128"),
    (lambda x: x.at[5].set(1.0), IndexError, r"5.*\(3, 4\)"),
    (lambda x: x.at[0, 0, 0].add(1.0), IndexError, r"\(3, 4\)"),
    (lambda x: gt.put_along_axis(x, [0], 1.0, 1), ValueError, "put_along_axis"),
    (lambda x: gt.put_along_axis(x, ALONG, gt.ones((2, 3)), 1), ValueError, r"\(2, 3\)"),
]

FAMILY = Family(errors=ERRORS, given=[X])
