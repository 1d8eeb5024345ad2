"""Unary and binary ops without parameters: the behaviour of ``Op`` at a lower cost.

A small model spends most of its time here. So these paths are written out: they dispatch, and
write the most common record into the tapes themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.context import active_tapes
from ..base.sizes import same_shape
from ..ops.dispatch import scalar_tables, transforms
from ..ops.floats import as_read
from ..ops.rule import BOTH
from .op import Op, name_op
from .tensor import Tensor

_NO_PARAMS: dict[str, Any] = {}


class UnaryOp(Op):
    """An op of one array without parameters: the behaviour of ``Op`` at a lower cost."""

    __slots__ = ()

    # TensorFlow programs label ops; a label has no effect here
    def __call__(self, x: Any, name: str | None = None) -> Tensor:
        if type(x) is not Tensor:
            return Op.__call__(self, x)
        array = x.array
        kernel = self._kernels.get(type(array)) or self.resolve((array,))
        try:
            result = kernel(array)
        except Exception as error:
            name_op(self, (array,), error)
            raise
        output = Tensor(result)
        for tape in active_tapes.get():
            records = tape.records
            if x.id in records:
                quick = self.quick[0]
                if quick is None or getattr(result.dtype, "kind", "c") == "c" or tape.wants_ops:
                    tape.record(self, (x,), output, _NO_PARAMS)
                    continue
                place, fn, check = quick
                if check is not None and (
                    type(array) in transforms
                    or array.dtype is not result.dtype
                    or array.shape != result.shape
                ):
                    tape.record(self, (x,), output, _NO_PARAMS)
                    continue
                if place == BOTH:
                    records[output.id] = (x.id, fn, (x, output), check)
                    continue
                saved = x if place == 0 else output if place == 1 else None
                records[output.id] = (x.id, fn, saved, check)
        return output

    def raw(self, x: Any) -> Any:
        return (self._kernels.get(type(x)) or self.resolve((x,)))(x)

    def resolve(self, arrays: Sequence[Any]) -> Callable[..., Any]:
        kernel = super().resolve(arrays)
        kind = type(arrays[0])  # the first run may be checked, and later ones are not
        self._kernels[kind] = self._kernels.get((kind,), kernel)
        return kernel


class BinaryOp(Op):
    """An op of two arrays without parameters: the behaviour of ``Op`` at a lower cost."""

    __slots__ = ()

    def __call__(self, x: Any, y: Any, name: str | None = None) -> Tensor:
        table = None
        try:
            if type(x) is Tensor:
                a = x.array
                if type(y) is Tensor:
                    b = y.array
                elif (tables := scalar_tables.get(type(y))) is not None:
                    table = tables.get(type(a))
                    b = y = y if table is None else table[y, a.dtype]
                else:
                    return Op.__call__(self, x, y)
            elif type(y) is Tensor and (tables := scalar_tables.get(type(x))) is not None:
                b = y.array
                table = tables.get(type(b))
                a = x = x if table is None else table[x, b.dtype]
            else:
                return Op.__call__(self, x, y)
        except OverflowError:
            if table is None:
                raise
            # a Python integer that does not fit the dtype: comparisons, and ops whose result has
            # another dtype, take it unchanged, and other kernels raise
            a, b = getattr(x, "array", x), getattr(y, "array", y)
        kernel = self._kernels.get((type(a), type(b)))
        if kernel is None:
            kernel = self.resolve((a, b))
            if hasattr(kernel, "on_tensors"):
                followed: Any = kernel.on_tensors((x, y), _NO_PARAMS)
                if followed is not None:
                    return followed
        try:
            result = kernel(a, b)
        except Exception as error:
            name_op(self, (a, b), error)
            raise
        output = Tensor(result)
        tapes = active_tapes.get()
        if tapes and self.floating:
            x, y = as_read(self, (x, y))
            a, b = getattr(x, "array", x), getattr(y, "array", y)
        for tape in tapes:
            records = tape.records
            x_live = x is not a and x.id in records
            y_live = y is not b and y.id in records
            if x_live is y_live:
                if x_live or tape.wary:
                    tape.record(self, (x, y), output, _NO_PARAMS)
                continue
            # one watched operand with the result's shape and dtype is by far the most common case
            if x_live:
                source, array, quick = x, a, self.quick[0]
            else:
                source, array, quick = y, b, self.quick[1]
            dtype = array.dtype
            if (
                quick is None
                or dtype is not result.dtype
                or getattr(dtype, "kind", "c") == "c"  # other libraries' dtypes may have none
                or tape.wants_ops
                # a scalar does not change the shape
                or (table is None and not same_shape(array.shape, result.shape))
            ):
                tape.record(self, (x, y), output, _NO_PARAMS)
                continue
            place, fn, check = quick
            if check is not None and type(array) in transforms:
                tape.record(self, (x, y), output, _NO_PARAMS)
                continue
            saved = None if place < 0 else x if place == 0 else y if place == 1 else output
            records[output.id] = (source.id, fn, saved, check)
            if tape.wary and (x is a or y is b):
                tape.look_at_numbers((x, y), (output,), False)
        return output

    def raw(self, x: Any, y: Any) -> Any:
        return (self._kernels.get((type(x), type(y))) or self.resolve((x, y)))(x, y)
