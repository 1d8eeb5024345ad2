"""The instructions of code: what the instruction at a place calls, and what it writes into.

Python's compiler says which part of the source an instruction belongs to. Where that does not
suffice, the instructions are followed backward: each takes values from a stack, and leaves values.
"""

from __future__ import annotations

import dis
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

#: Where an expression begins and ends in the source: lines and columns.
Span: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


@lru_cache(maxsize=256)
def instructions(code: CodeType) -> list[dis.Instruction]:
    """Return the instructions of code, each of which loads or stores one variable at most.

    From Python 3.13 on, an instruction may load two: ``LOAD_FAST_LOAD_FAST``. The second one has an
    odd offset, and the first one's place in the source, because Python does not keep its own.
    Prefixes of arguments above 255 are left out: they would stand between an object and its use.
    """
    found: list[dis.Instruction] = []
    for one in dis.get_instructions(code):
        names = one.argval
        if one.opname in _NOTHING:
            continue
        if isinstance(names, tuple) and one.opname.count("_FAST") == len(names) == 2:
            first, second = _two(one.opname)
            found.append(one._replace(opname=first, argval=names[0]))
            found.append(one._replace(opname=second, argval=names[1], offset=one.offset + 1))
        else:
            found.append(one)
    return found


#: Instructions that neither take nor leave a value, and call nothing.
_NOTHING = frozenset({"EXTENDED_ARG", "NOP", "NOT_TAKEN"})


def _two(name: str) -> tuple[str, str]:
    """Return the names of the two instructions of which one consists: ``STORE_FAST_LOAD_FAST``."""
    middle = max(name.find("_LOAD_", 1), name.find("_STORE_", 1))
    return name[:middle], name[middle + 1 :]


def at(code: CodeType, place: int) -> dis.Instruction | None:
    """Return the instruction at a place, which may be within it."""
    number = number_at(code, place)
    return None if number < 0 else instructions(code)[number]


def number_at(code: CodeType, place: int) -> int:
    """Return the number of the instruction at a place; -1 if there is none."""
    return bisect_right(instructions(code), place, key=_OFFSET) - 1


_OFFSET = attrgetter("offset")


def has_place(one: dis.Instruction) -> bool:
    """Return whether Python keeps the place of an instruction: not of the second of a pair."""
    return one.offset % 2 == 0


def span(one: dis.Instruction) -> Span | None:
    """Return where the expression of an instruction begins and ends in the source."""
    where = one.positions
    if where is None or None in where:
        return None
    line, end_line, column, end_column = where
    return (line, column), (end_line, end_column)  # type: ignore[return-value]


def is_call(one: dis.Instruction) -> bool:
    """Return whether an instruction calls a function."""
    return one.opname.startswith("CALL")


def is_item_store(one: dis.Instruction) -> bool:
    """Return whether an instruction is the assignment of ``a[i] = x``."""
    return one.opname in ("STORE_SUBSCR", "STORE_SLICE")


def names_at(code: CodeType, found: dis.Instruction) -> list[str]:
    """Return the names with which the expression of an instruction begins: ``math, sin``."""
    every = instructions(code)
    number = bisect_left(every, found.offset, key=_OFFSET)
    path = _path(every, _end_of_object(every, number))
    if path:
        return [str(step.value) for step in path if step.kind in ("name", "attribute")]
    here, names = span(found), list[str]()
    while here is not None and number:
        number -= 1
        one = every[number]
        where = span(one) if has_place(one) else None
        if where is None or where[0] != here[0] or not one.opname.startswith("LOAD_"):
            continue
        if one.opname == "LOAD_CONST" and where == here:
            continue  # the names of keyword arguments, from Python 3.13 on
        names.append(str(one.argval))
        if one.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            return names[::-1]
    return names[::-1]


def _end_of_object(every: Sequence[dis.Instruction], number: int) -> int:
    """Return where the expression ends that gives what is called, or what is assigned to."""
    one = every[number]
    if is_item_store(one):
        return _item_owner(every, number)
    if one.opname == "STORE_ATTR":
        return number
    if one.opname not in _CALLS:
        return 0
    end = _arguments(every, number)[0]
    return end - (every[end - 1].opname == "PUSH_NULL")


_CALLS = ("CALL", "CALL_KW", "PRECALL")


@lru_cache(maxsize=256)
def called(code: CodeType, place: int) -> str:
    """Return the name of the function that the instruction at ``place`` calls.

    ``"%"`` for the formatting of a text, ``"[...] ="`` for an assignment to an element, the name of
    an attribute in ``a.real = x``, and an empty text if it is not known.
    """
    found = at(code, place)
    if found is None:
        return ""
    if is_item_store(found):
        return ITEM
    if found.opname == "STORE_ATTR":
        return found.argval if found.argval in PARTS else ""
    if found.opname == "BINARY_OP":
        return "%" if "%" in found.argrepr else ""
    if not (is_call(found) or found.opname == "PRECALL"):
        return ""
    return ".".join(names_at(code, found))


#: What is shown for an assignment to elements, ``a[i] = x``.
ITEM = "[...] ="


def parameters(code: CodeType) -> tuple[str, ...]:
    """Return the names of a function's arguments."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return code.co_varnames[:count]


@lru_cache(maxsize=256)
def is_given(code: CodeType, name: str) -> bool:
    """Return whether a name is that of an argument to which a function assigns nothing else."""
    return name in parameters(code) and not any(
        then.opname.startswith("STORE_")
        and then.argval == name
        and not (first.opname == "BINARY_OP" and first.argrepr.endswith("="))
        for first, then in pairwise(instructions(code))
    )


# -- what code assigns to --------------------------------------------------------------------------


class Step(NamedTuple):
    """One part of an expression such as ``self.parts["a"]``: a variable, an attribute, or an item.

    ``kind`` is ``"name"``, ``"attribute"``, ``"item"`` with a constant index, ``"of"`` with the
    name of the variable that holds the index, or ``"any"`` for another index.
    """

    kind: str
    value: Any

    def __str__(self) -> str:
        if self.kind == "item" and isinstance(self.value, str):
            return f'["{self.value}"]'
        return _SHOWN[self.kind].format(self.value)


_SHOWN = {"name": "{}", "attribute": ".{}", "item": "[{!r}]", "of": "[{}]", "any": "[i]"}


@lru_cache(maxsize=1024)
def path_written(code: CodeType, place: int) -> tuple[Step, ...]:
    """Return the expression of the object into which the instruction at ``place`` writes.

    That is ``a`` in ``a[i] = x``, ``a += x``, ``a.fill(x)`` and ``numpy.fill_diagonal(a, x)``, and
    ``a[0]`` in ``a[0] += x``. It is empty if the expression has other parts than variables,
    attributes and items.
    """
    every = instructions(code)
    end = max(number_at(code, place), 0)
    one = every[end]
    if is_item_store(one):
        return _path(every, _item_owner(every, end))
    if one.opname == "BINARY_OP":
        return _path(every, start_of(every, end))
    if one.opname == "STORE_ATTR":
        return _path(every, end)
    if one.opname not in _CALLS:
        return ()
    end, second = _arguments(every, end)
    if every[end - 1].argval in METHODS:
        return _path(every, end - 1)
    return _path(every, second)  # its first argument ends there


def _arguments(every: Sequence[dis.Instruction], end: int) -> tuple[int, int]:
    """Return where the first and the second argument of a call begin, which is at ``end``."""
    count = (every[end].arg or 0) + (every[end].opname == "CALL_KW")  # and the names of some
    end -= every[end].opname == "CALL" and every[end - 1].opname == "PRECALL"
    second = end
    for _ in range(count):
        second, end = end, start_of(every, end)
    return end, second


@lru_cache(maxsize=256)
def paths_to_sources(code: CodeType, name: str) -> list[tuple[Step, ...]]:
    """Return the ways to the objects of which code makes a variable.

    That is ``a[0]`` in ``row = a[0]``, ``a`` in ``row = a.ravel()`` and in ``for row in a:``.
    """
    every, found = instructions(code), list[tuple[Step, ...]]()
    for number, one in enumerate(every):
        if not (number and one.opname.startswith("STORE_") and one.argval == name):
            continue
        before, end = every[number - 1], number
        if before.opname == "FOR_ITER":
            end = number - 2  # before GET_ITER
        elif before.opname == "CALL":
            end = _arguments(every, number - 1)[0] - 1  # before the method
        found.append(_path(every, end))
    return found


@lru_cache(maxsize=256)
def loads_of_owners(code: CodeType) -> frozenset[int]:
    """Return the numbers of the instructions that load the ``a`` of ``a[i] = x``."""
    every, found = instructions(code), set[int]()
    for number, one in enumerate(every):
        if is_item_store(one):
            end = _item_owner(every, number)
            found.update(range(start_of(every, end), end))
    return frozenset(found)


def _item_owner(every: Sequence[dis.Instruction], number: int) -> int:
    """Return where the expression ends that gives the ``a`` of ``a[i] = x`` or ``a[i] += x``."""
    end = number
    while end and every[end - 1].opname == "SWAP":
        end -= 1
    if end < number:
        end = start_of(every, end)  # of the value of a[i] += x
    for _ in range(2 if every[number].opname == "STORE_SLICE" else 1):
        end = start_of(every, end)
    return end


#: Methods of NumPy's arrays that write into them.
METHODS = frozenset({"__setitem__", "fill", "put"})
#: Attributes of NumPy's arrays to which code assigns, to change the array.
PARTS = ("flat", "imag", "real")


def path_at(code: CodeType, number: int) -> tuple[Step, ...]:
    """Return the expression of the object that an instruction gives; empty if it is not simple."""
    return _path(instructions(code), number + 1)


def start_of(every: Sequence[dis.Instruction], end: int) -> int:
    """Return the number of the first instruction of the expression that ends before ``end``."""
    values = 0
    for number in range(end - 1, -1, -1):
        values += _effect(every[number])
        if values == 1:
            return number
    return 0


def _effect(one: dis.Instruction) -> int:
    """Return how many values an instruction leaves, less those that it takes."""
    if one.opname.startswith(("LOAD_FAST", "STORE_FAST")):
        return 1 if one.opname[0] == "L" else -1
    try:
        return dis.stack_effect(one.opcode, one.arg, jump=False)
    except ValueError:
        return 0


def _path(every: Sequence[dis.Instruction], end: int) -> tuple[Step, ...]:
    """Return the expression of the object that the expression before ``end`` gives; else empty."""
    if end <= 0:
        return ()
    last = every[end - 1]
    if last.opname == "COPY" and last.arg == 1:
        return _path(every, end - 1)
    if last.opname in ("LOAD_ATTR", "LOAD_METHOD"):
        before = _path(every, end - 1)
        return (*before, Step("attribute", last.argval)) if before else ()
    if last.opname in _LOADS:
        return (Step("name", last.argval),)
    count = 2 if last.opname == "BINARY_SLICE" else 1
    if last.opname not in ("BINARY_SUBSCR", "BINARY_SLICE") and last.argrepr != "[]":
        return ()
    end -= 1
    if every[end - 1].opname == "COPY":  # of the object and the index, for a[i] += x
        end -= 1 + count
    key = every[end - 1]
    step = Step("any", None)
    if count == 1 and key.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
        step = Step("item", key.argval)
    elif count == 1 and key.opname in _LOADS:
        step = Step("of", key.argval)
    for _ in range(count):
        end = start_of(every, end)
    before = _path(every, end)
    return (*before, step) if before else ()


_LOADS = frozenset(
    "LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_NAME LOAD_GLOBAL LOAD_DEREF".split()
)
