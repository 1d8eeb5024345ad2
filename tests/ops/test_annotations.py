"""What the annotations of public functions promise is what comes, on the samples of the suite."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from table import FUNCTIONS, as_called

import gradtape as gt

PROMISES = {
    "Tensor": lambda y: type(y) is gt.Tensor,
    "list[Tensor]": lambda y: type(y) is list and all(type(x) is gt.Tensor for x in y),
    "tuple[Tensor, ...]": lambda y: type(y) is tuple and all(type(x) is gt.Tensor for x in y),
    "tuple[Tensor, Tensor]": lambda y: [type(x) for x in y] == [gt.Tensor] * 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_returns_what_it_says(name: str) -> None:
    function: Any = gt
    for part in name.split("."):
        function = getattr(function, part)
    promise = PROMISES.get(inspect.unwrap(function).__annotations__["return"])
    if promise is None:
        pytest.skip("its results differ in kind")
    for sample in FUNCTIONS[name]:
        given = (gt.constant(x) if hasattr(x, "dtype") else x for x in sample.inputs)
        fed = sample.feed(*given)
        results = as_called(name)(*(fed if isinstance(fed, tuple) else (fed,)), **sample.params)
        assert promise(results)
