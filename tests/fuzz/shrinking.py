"""Reduction of a failing program to the smallest one that still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from fuzz.program import Array, Line, Program

__all__ = ["reduced"]

ROUNDS = 400


def reduced(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Return the smallest program found for which ``fails`` holds.

    Steps are tried one after another: fewer results, fewer lines, simpler lines, sizes of 1, round
    numbers.
    """
    tried = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _steps(program):
            tried += 1
            if tried > ROUNDS:
                return program
            if fails(candidate):
                program, smaller = candidate, True
                break
    return program


def _steps(program: Program) -> Iterator[Program]:
    """Give simpler programs, the largest simplifications first."""
    if len(program.outputs) > 1:
        for name in program.outputs:
            yield replace(program, outputs=(name,)).pruned()
    for line in reversed(program.lines):
        if line.name in program.outputs:
            for name in line.operands:
                others = tuple(n for n in program.outputs if n != line.name)
                yield replace(program, outputs=(name, *others)).pruned()
    for i, line in enumerate(program.lines):
        yield from _without(program, i, line)
    for i, line in enumerate(program.lines):
        value = program.values.get(line.name)
        if value is not None and line.operands and line.name not in program.outputs:
            yield from _as_input(program, i, line, value)
    for name, x in program.inputs.items():
        for other in _simpler(x):
            yield replace(program, inputs={**program.inputs, name: other})


def _without(program: Program, i: int, line: Line) -> Iterator[Program]:
    """Give programs in which another value of the same shape replaces a line's value."""
    if line.assigns:
        yield replace(program, lines=program.lines[:i] + program.lines[i + 1 :]).pruned()
        return
    value = program.values.get(line.name)
    if value is None:
        return
    before = {*program.inputs, *(earlier.name for earlier in program.lines[:i])}
    for name in sorted(before, key=lambda n: n[0] != "x"):
        other = program.values.get(name)
        if other is not None and other.shape == value.shape and other.dtype == value.dtype:
            rest = tuple(_renamed(later, line.name, name) for later in program.lines[i + 1 :])
            outputs = tuple(dict.fromkeys(name if n == line.name else n for n in program.outputs))
            lines = program.lines[:i] + rest
            yield replace(program, lines=lines, outputs=outputs).pruned()


def _as_input(program: Program, i: int, line: Line, value: Array) -> Iterator[Program]:
    """Give the program in which a line's value becomes an input."""
    name = f"x{1 + max(int(n[1:]) for n in program.inputs)}"
    rest = tuple(_renamed(later, line.name, name) for later in program.lines[i + 1 :])
    yield replace(
        program,
        inputs={**program.inputs, name: value},
        values={**program.values, name: value},
        lines=program.lines[:i] + rest,
    ).pruned()


def _renamed(line: Line, old: str, new: str) -> Line:
    return replace(line, operands=tuple(new if n == old else n for n in line.operands))


def _simpler(x: Array) -> Iterator[Array]:
    """Give arrays with fewer elements along an axis, or with rounder numbers."""
    for axis, size in enumerate(x.shape):
        if size > 1:
            yield np.take(x, range(size - 1), axis=axis)
    if x.dtype.kind == "f":
        for digits in (1, 2):
            rounded = np.round(x, digits)
            if not np.array_equal(rounded, x):
                yield rounded
