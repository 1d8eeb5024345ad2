"""The function that Python calls: it checks the arrays of a group, and runs the group's loop.

It is the same for all groups, so it is compiled once. What it must know of a group is in an array
of integers, its state. The arrays must be as the plan says: type, dtype, shape, order in memory. If
they are not, or the processor has set a flag that NumPy would warn of, it calls ``otherwise`` with
the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from platform import machine
from typing import Any

import numpy as np

from ...core.extend import Symbol
from ..planned import LoopGroup, shape_of
from .compiler import (
    ALIGNED,
    DATA,
    DTYPE,
    DTYPES,
    FLAGS,
    FUNCTION,
    HEADER,
    ORDERED,
    RANK,
    SHAPE,
    STATE,
    address_of,
    function_at,
)
from .inner_loops import InnerLoop

#: From this number of operations, a group lets other threads run meanwhile.
_LONG = 2**14
#: The number of times that a loop is repeated for its warnings before it is given up.
_MOST_REPEATED = 10


def function_of(
    group: LoopGroup,
    text: str,
    otherwise: Callable[..., Any],
    loops: Sequence[InnerLoop] = (),
    length: int = 0,
    strided: Mapping[Symbol, Sequence[int]] | None = None,
) -> Callable[..., Any]:
    """Return a function of a group's arrays, outputs first.

    Parameters
    ----------
    group
        The group.
    text
        The text of ``loop(inner loops, first position, end, memory of the arrays)``.
    otherwise
        A Python function that it may call.
    loops
        The inner loops that it calls.
    length
        The length of the axis of which a call computes a part: from the first to before the last
        position, which are its last two arguments. 0 if each call computes all.
    strided
        The strides, in elements, of the inputs that are not C contiguous.
    """
    arrays = [*group.outputs, *group.inputs]
    records = [word for x in arrays for word in _record(x, (strided or {}).get(x))]
    long = prod(group.shape) * len(group.members) >= _LONG
    head = [address_of(text), len(arrays), length, long, len(_HEAD) + len(records)]
    pointers = [pointer for loop in loops for pointer in loop.pointers]
    state = np.array([0, id(otherwise), *head, *records, *pointers], np.uint64)
    return function_at(address_of(_text()), state, (otherwise, *loops))


def lead_to(function: Callable[..., Any], other: Callable[..., Any]) -> None:
    """Let a function of :func:`function_of` call another one instead of its ``otherwise``.

    Parameters
    ----------
    function
        The function.
    other
        What it calls from now on. The caller keeps it for as long as the function exists.
    """
    state: Any = function.__self__  # type: ignore[attr-defined]
    state[_HEAD.index("otherwise")] = id(other)


#: The words of a state before the records of arrays; the inner loops follow those.
_HEAD = ("repeated", "otherwise", "loop", "count", "length", "long", "table")


def _record(x: Symbol, strides: Sequence[int] | None) -> list[int]:
    """Return what is compared with an array: words, rank, dtype, type of numbers, flags; words."""
    shape, dtype = shape_of(x), DTYPES[np.dtype(x.dtype).name]
    words = list(shape)
    if strides is not None:  # they follow the lengths
        words += [dtype.itemsize * stride for stride in strides]
    flags = ORDERED if strides is None else ALIGNED
    number = 0 if shape else id(dtype.type)
    return [len(words), len(shape), id(dtype), number, flags, *words]


def _text() -> str:
    """Return the text of the function for all groups."""
    places = {name: 8 * i for i, name in enumerate(_HEAD)}
    return _TEMPLATE.format(
        function=FUNCTION,
        records=8 * len(_HEAD),
        most=_MOST_REPEATED,
        bits=FLAGS.get(machine(), 0),
        header=HEADER,
        of_type=HEADER - 8,
        **{f"of_{name}": place for name, place in places.items()},
        data=DATA,
        rank=RANK,
        shape=SHAPE,
        dtype=DTYPE,
        flags=STATE,
    )


_TEMPLATE = """
@array_type = external global i8
@_Py_NoneStruct = external global i8
declare void @Py_IncRef(ptr)
declare ptr @PyErr_Occurred()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare i64 @PyLong_AsSsize_t(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i32 @feclearexcept(i32)
declare i32 @fetestexcept(i32)

define ptr @{function}(ptr %self, ptr %args, i64 %given) {{
start:
  %p0 = getelementptr i8, ptr %self, i64 {data}
  %state = load ptr, ptr %p0
  %p1 = getelementptr i8, ptr %state, i64 {of_repeated}
  %repeated = load i64, ptr %p1
  %given_up = icmp sge i64 %repeated, {most}
  br i1 %given_up, label %otherwise, label %begin

begin:
  %p2 = getelementptr i8, ptr %state, i64 {of_count}
  %count = load i64, ptr %p2
  %memory = alloca ptr, i64 %count, align 8
  %records = getelementptr i8, ptr %state, i64 {records}
  br label %argument

; one argument after another is compared with its record
argument:
  %i = phi i64 [ 0, %begin ], [ %i_next, %right ]
  %record = phi ptr [ %records, %begin ], [ %record_next, %right ]
  %p3 = getelementptr ptr, ptr %args, i64 %i
  %x = load ptr, ptr %p3
  %p4 = getelementptr i8, ptr %x, i64 {of_type}
  %type = load ptr, ptr %p4
  %is_array = icmp eq ptr %type, @array_type
  br i1 %is_array, label %array, label %number

number:
  %p5 = getelementptr i64, ptr %record, i64 3
  %number_type = load ptr, ptr %p5
  %is_number = icmp eq ptr %type, %number_type
  %inside = getelementptr i8, ptr %x, i64 {header}
  %after_number = getelementptr i64, ptr %record, i64 5
  br i1 %is_number, label %right, label %otherwise

array:
  %words = load i64, ptr %record
  %p6 = getelementptr i64, ptr %record, i64 1
  %rank = load i64, ptr %p6
  %p7 = getelementptr i64, ptr %record, i64 2
  %dtype = load ptr, ptr %p7
  %p8 = getelementptr i64, ptr %record, i64 4
  %flags64 = load i64, ptr %p8
  %flags = trunc i64 %flags64 to i32
  %p9 = getelementptr i8, ptr %x, i64 {rank}
  %its_rank32 = load i32, ptr %p9
  %its_rank = zext i32 %its_rank32 to i64
  %p10 = getelementptr i8, ptr %x, i64 {dtype}
  %its_dtype = load ptr, ptr %p10
  %p11 = getelementptr i8, ptr %x, i64 {flags}
  %its_flags = load i32, ptr %p11
  %set = and i32 %its_flags, %flags
  %same_rank = icmp eq i64 %rank, %its_rank
  %same_dtype = icmp eq ptr %dtype, %its_dtype
  %same_flags = icmp eq i32 %set, %flags
  %same_two = and i1 %same_rank, %same_dtype
  %same = and i1 %same_two, %same_flags
  %p12 = getelementptr i8, ptr %x, i64 {data}
  %its_memory = load ptr, ptr %p12
  %p13 = getelementptr i8, ptr %x, i64 {shape}
  %lengths = load ptr, ptr %p13
  %wanted = getelementptr i64, ptr %record, i64 5
  %after = getelementptr i64, ptr %wanted, i64 %words
  br i1 %same, label %word, label %otherwise

word:
  %k = phi i64 [ 0, %array ], [ %k_next, %compare ]
  %last = icmp eq i64 %k, %words
  br i1 %last, label %right, label %compare

compare:
  %p14 = getelementptr i64, ptr %wanted, i64 %k
  %a = load i64, ptr %p14
  %p15 = getelementptr i64, ptr %lengths, i64 %k
  %b = load i64, ptr %p15
  %k_next = add i64 %k, 1
  %equal = icmp eq i64 %a, %b
  br i1 %equal, label %word, label %otherwise

right:
  %place = phi ptr [ %inside, %number ], [ %its_memory, %word ]
  %record_next = phi ptr [ %after_number, %number ], [ %after, %word ]
  %p16 = getelementptr ptr, ptr %memory, i64 %i
  store ptr %place, ptr %p16
  %i_next = add i64 %i, 1
  %more = icmp slt i64 %i_next, %count
  br i1 %more, label %argument, label %arranged

arranged:
  %p17 = getelementptr i8, ptr %state, i64 {of_length}
  %length = load i64, ptr %p17
  %in_parts = icmp ne i64 %length, 0
  br i1 %in_parts, label %part, label %clear

part:
  %p18 = getelementptr ptr, ptr %args, i64 %count
  %x_start = load ptr, ptr %p18
  %start_given = call i64 @PyLong_AsSsize_t(ptr %x_start)
  %p19 = getelementptr ptr, ptr %p18, i64 1
  %x_end = load ptr, ptr %p19
  %end_given = call i64 @PyLong_AsSsize_t(ptr %x_end)
  %c1 = icmp sge i64 %start_given, 0
  %c2 = icmp slt i64 %start_given, %end_given
  %c3 = icmp sle i64 %end_given, %length
  %c4 = and i1 %c1, %c2
  %within = and i1 %c3, %c4
  br i1 %within, label %clear, label %otherwise

clear:
  %from = phi i64 [ 0, %arranged ], [ %start_given, %part ]
  %to = phi i64 [ 0, %arranged ], [ %end_given, %part ]
  %before = call i32 @fetestexcept(i32 {bits})
  %none_before = icmp eq i32 %before, 0
  br i1 %none_before, label %cleared, label %flagged

flagged:  ; to clear flags takes longer than to test them
  %cleared_now = call i32 @feclearexcept(i32 {bits})
  br label %cleared

cleared:
  %p20 = getelementptr i8, ptr %state, i64 {of_loop}
  %loop = load ptr, ptr %p20
  %p21 = getelementptr i8, ptr %state, i64 {of_table}
  %table_place = load i64, ptr %p21
  %table = getelementptr i64, ptr %state, i64 %table_place
  %p22 = getelementptr i8, ptr %state, i64 {of_long}
  %long64 = load i64, ptr %p22
  %long = icmp ne i64 %long64, 0
  br i1 %long, label %alone, label %together

alone:  ; other threads run meanwhile
  %thread = call ptr @PyEval_SaveThread()
  %left_alone = call i32 %loop(ptr %table, i64 %from, i64 %to, ptr %memory)
  %raised_alone = call i32 @fetestexcept(i32 {bits})
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done

together:
  %left_together = call i32 %loop(ptr %table, i64 %from, i64 %to, ptr %memory)
  %raised_together = call i32 @fetestexcept(i32 {bits})
  br label %done

done:
  %left = phi i32 [ %left_alone, %alone ], [ %left_together, %together ]
  %raised = phi i32 [ %raised_alone, %alone ], [ %raised_together, %together ]
  %error = call ptr @PyErr_Occurred()
  %calm = icmp eq ptr %error, null
  br i1 %calm, label %look, label %failed

failed:  ; an inner loop has raised an exception
  ret ptr null

look:
  %noted = or i32 %left, %raised
  %fine = icmp eq i32 %noted, 0
  br i1 %fine, label %return, label %note

return:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct

note:
  %once_more = add i64 %repeated, 1
  store i64 %once_more, ptr %p1
  br label %otherwise

otherwise:
  %p23 = getelementptr i8, ptr %state, i64 {of_otherwise}
  %python = load ptr, ptr %p23
  %result = call ptr @PyObject_Vectorcall(ptr %python, ptr %args, i64 %given, ptr null)
  ret ptr %result
}}
"""
