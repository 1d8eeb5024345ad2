"""Functions that pickle calls to create objects from stored bytes; pickles name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.extend import (
    ConcreteFunction,
    RestoredFunction,
    Tensor,
    Variable,
    init_scope,
    own_array,
    registry,
)
from ..container.hdf5.file import SafeFile
from ..errors import DamagedFile, guarded
from ..reading.contents import check_format
from ..reading.graphs import GraphReader
from ..records.schema import decode_signature, parse, take, take_label

#: Where a file that is a single array has it, and one that is a function.
VALUE, FUNCTION = "/value", "/function"


def tensor(held: Any) -> Tensor:
    """Return a tensor of a value, on the current backend."""
    with init_scope():
        return Tensor(own_array(_array(held)))


def variable(cls: type[Variable], held: Any, trainable: bool, name: str) -> Variable:
    """Return a variable of a value, on the current backend; its class's code does not run."""
    with init_scope():
        return cls.holding(_array(held), trainable, name)


def function(held: Any, variables: Sequence[Variable]) -> RestoredFunction:
    """Return a function of these variables."""
    with guarded(memoryview(held)), _opened(held) as file, init_scope():
        record = parse(file.text(FUNCTION))
        reader = GraphReader(registry(), variables, file.array)
        where = "function"
        reader.read_rules(take(record, "rules", list, where))
        traces = [reader.function(trace, where) for trace in take(record, "traces", list, where)]
        signature = decode_signature(take(record, "parameters", list, where), where)
        name, sizes = take_label(record, "name", where), take(record, "sizes", str, where)
        for concrete, also in zip(traces, take(record, "dtypes", list, where), strict=True):
            concrete.also = tuple(map(tuple, also))
        converts = take(record, "converts", bool, where)
        return RestoredFunction(name, signature, traces, sizes, converts)


def concrete_function(held: Any, variables: Sequence[Variable]) -> ConcreteFunction:
    """Return a function's only trace."""
    traces = function(held, variables).concrete_functions
    if len(traces) != 1:
        raise DamagedFile(f"{len(traces)} traces instead of one")
    return traces[0]


def _opened(held: Any) -> SafeFile:
    # no limit: unpickling trusts the sender, so only damage is checked
    view = memoryview(held)
    file = SafeFile(view, max_bytes=max(1, view.nbytes))
    check_format(file)
    file.check()
    return file


def _array(held: Any) -> np.ndarray[Any, Any]:
    with _opened(held) as file:
        return file.array(VALUE)
