"""Whether a size is truthy: where no run could make it 0, a trace may ask."""

from __future__ import annotations

from typing import Any

import pytest

import gradtape as gt
from gradtape.errors import TraceError


def traced(fn: Any) -> None:
    gt.function(fn).get_concrete_function(gt.TensorSpec([None]))


def test_a_size_that_is_never_0_is_true() -> None:
    def fn(x: Any) -> Any:
        assert x.shape[0] + 1
        assert not x.shape[0] * 0
        return x

    traced(fn)


def test_a_size_that_may_be_0_is_refused() -> None:
    with pytest.raises(TraceError, match="a decision"):
        traced(lambda x: x if x.shape[0] else 2 * x)
