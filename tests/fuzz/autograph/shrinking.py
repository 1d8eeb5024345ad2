"""Reduction of a program to the smallest one found with the same outcome."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from fuzz.autograph.checking import compared
from fuzz.autograph.writer import Line, Program

__all__ = ["reduced"]

TRIES = 150


def reduced(program: Program, tries: int = TRIES) -> Program:
    """Return the smallest program found that has the outcome of this one."""
    outcome, _, point = compared(program)

    def fails(candidate: Program) -> bool:
        nonlocal tries
        found = compared(candidate, [point])[0]
        tries -= found != "invalid"  # these cost next to nothing
        return found == outcome

    # most of a program has nothing to do with it: halves first, then quarters, ...
    size = len(program.lines) // 2
    while size > 1:
        for first in range(len(program.lines) - size, -1, -size):
            candidate = program.without(first, first + size)
            if fails(candidate):
                program = candidate
        size //= 2
    smaller = True
    while smaller and tries > 0:
        smaller = False
        for candidate in _steps(program):
            if fails(candidate):
                program, smaller = candidate, True
                break
            if tries <= 0:
                break
    return program


def _steps(program: Program) -> Iterator[Program]:
    """Give simpler programs, the largest simplifications first."""
    lines = program.lines
    spans = [(i, _end(lines, i)) for i in range(len(lines))]
    for i, end in sorted(spans, key=lambda span: span[0] - span[1]):
        yield program.without(i, end)
    for i in range(len(program.told)):
        yield replace(program, told=program.told[:i] + program.told[i + 1 :])
    for i, end in spans:
        line = lines[i]
        if end > i + 1:
            inside = [replace(x, depth=x.depth - 1) for x in lines[i + 1 : end]]
            yield program.without(i, end, *inside)
        elif line.text not in ("pass", "break", "continue"):
            yield program.without(i, end, Line(line.depth, "pass"))
        for text in _simpler(line.text):
            if text != line.text and len(text) < len(line.text):
                yield program.without(i, i + 1, replace(line, text=text))


def _end(lines: tuple[Line, ...], i: int) -> int:
    end = i + 1
    while end < len(lines) and lines[end].depth > lines[i].depth:
        end += 1
    return end


def _simpler(text: str) -> Iterator[str]:
    if re.match(r"(if|elif) .*:$", text):
        yield re.sub(r"^(\w+) .*", r"\1 a > 0.1:", text)
    if re.match(r"while \w+ < 3 and", text):
        yield re.sub(r"and .*", "and (a > 0.1):", text)
    found = re.match(r"(\w+) = gt\.tanh\((.*)\)$", text)
    if found:
        yield f"{found[1]} = {found[2]}"
        yield f"{found[1]} = a * 2.0"
