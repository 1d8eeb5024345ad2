"""Shape rules are given what a stranger wrote: they may refuse it, not build what it describes."""

from __future__ import annotations

import inspect
import time
import warnings
from typing import Any

import pytest

import gradtape as gt
from gradtape.core.extend import Graph, tracing_into

HUGE = 2**45
PARAMETERS: tuple[Any, ...] = (
    HUGE,
    -HUGE,
    2**22,
    2**63,
    (HUGE, HUGE),
    ((HUGE, HUGE), (HUGE, HUGE)),
    tuple(range(20_000)),
    "x" * 20_000,
    "ab,bc->ac" * 500,
    {"a": 1},
    [HUGE],
    None,
    1e308,
)
SHAPES = ((2, 3), (None, 3), None, (), (2**40,), (2, 2**45))


@pytest.mark.parametrize("name", sorted(gt.registry().ops))
def test_a_shape_rule_takes_no_time_or_memory_for_any_parameter(name: str) -> None:
    op = gt.registry().ops[name]
    count = len([x for x in op.inputs if not x.startswith("*")]) or 2
    required = [k for k, v in op.defaults.items() if v is inspect.Parameter.empty]
    start = time.process_time()
    for shape in SHAPES:
        for parameter in op.defaults:
            for value in PARAMETERS:
                graph = Graph("hostile")
                inputs = [graph.input(gt.TensorSpec(shape)) for _ in range(count)]
                given = {**op.defaults, **dict.fromkeys(required, value), parameter: value}
                try:
                    with tracing_into(graph), warnings.catch_warnings(action="ignore"):
                        graph.add(op, inputs, given)
                except MemoryError:
                    pytest.fail(f"{parameter}={str(value)[:60]} for shape {shape}")
                except Exception:  # refused, in whatever words: the reader makes a LoadError of it
                    continue
                assert sum(len(node.outputs) for node in graph.nodes) <= 2**16
    assert time.process_time() - start < 5.0
