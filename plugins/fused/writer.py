"""The writer of LLVM's intermediate representation: instructions, labels and loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from .forms import TYPES, constant

#: The LLVM types of elements in memory.
MEMORY = {**TYPES, "bool": "i8"}


class Writer:
    """The lines of one function.

    Attributes
    ----------
    lines
        The lines so far.
    called
        The declarations of the functions that it calls.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.called: set[str] = set()
        self._numbers = count()
        self._block = ""
        self.label("start")

    def new(self, text: str) -> str:
        """Add an instruction; return the name of its value."""
        if text.startswith("call") and "@" in text.split("(")[0]:
            self.called.add(_declaration(text))
        name = f"%v{next(self._numbers)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def at(self, pointer: str, place: Any, kind: str = "i8") -> str:
        """Return the address of an element, or of a byte."""
        if place in (0, "0"):
            return pointer
        return self.new(f"getelementptr inbounds {kind}, ptr {pointer}, i64 {place}")

    def load(self, kind: str, pointer: str, offset: int = 0) -> str:
        """Return the value at an address."""
        return self.new(f"load {kind}, ptr {self.at(pointer, offset)}")

    def store(self, kind: str, value: str, pointer: str) -> None:
        """Write a value to an address."""
        self.lines.append(f"  store {kind} {value}, ptr {pointer}")

    def read(self, dtype: Any, pointer: str, place: str) -> str:
        """Return an element of an array."""
        kind = MEMORY[np.dtype(dtype).name]
        value = self.load(kind, self.at(pointer, place, kind))
        return self.new(f"icmp ne i8 {value}, 0") if kind == "i8" else value

    def write(self, dtype: Any, value: str, pointer: str, place: str) -> None:
        """Write an element of an array."""
        kind = MEMORY[np.dtype(dtype).name]
        if kind == "i8":
            value = self.new(f"zext i1 {value} to i8")
        self.store(kind, value, self.at(pointer, place, kind))

    def note(self, value: str, pointer: str) -> None:
        """Set the bits of a 32-bit number in memory that are set in a value."""
        self.store("i32", self.new(f"or i32 {self.load('i32', pointer)}, {value}"), pointer)

    def place(self, places: list[str], strides: list[int]) -> str:
        """Return the position of an element, given that along each axis."""
        found = "0"
        for place, stride in zip(places, strides, strict=True):
            if stride and place != "0":
                part = place if stride == 1 else self.new(f"mul nuw nsw i64 {place}, {stride}")
                found = part if found == "0" else self.new(f"add nuw nsw i64 {found}, {part}")
        return found

    def label(self, name: str) -> None:
        """Begin a block of instructions."""
        self.lines.append(f"{name}:")
        self._block = name

    @property
    def block(self) -> str:
        """The name of the current block."""
        return self._block

    def number(self) -> int:
        """Return a number for names, a new one in each call."""
        return next(self._numbers)

    @contextmanager
    def loop(self, start: Any, end: Any, step: int = 1, hint: str = "") -> Iterator[str]:
        """Write a loop, which runs at least once, around the lines that are added meanwhile."""
        n = next(self._numbers)
        self.lines.append(f"  br label %head{n}")
        before = self._block
        self.label(f"head{n}")
        self.lines.append(f"  %k{n} = phi i64 [ {start}, %{before} ], [ %n{n}, %tail{n} ]")
        yield f"%k{n}"
        self.lines.append(f"  br label %tail{n}")
        self.label(f"tail{n}")
        self.lines += [
            f"  %n{n} = add nuw nsw i64 %k{n}, {step}",
            f"  %e{n} = icmp {'eq' if step == 1 else 'uge'} i64 %n{n}, {end}",
            f"  br i1 %e{n}, label %done{n}, label %head{n}{hint}",
        ]
        self.label(f"done{n}")


def literal(value: Any, dtype: Any) -> str:
    """Return a number as an operand of instructions."""
    number = np.dtype(dtype).type(value)
    if number.dtype.kind != "f":
        return str(int(number)) if number.dtype.kind == "i" else str(bool(number)).lower()
    return constant(float(number))


def _declaration(call: str) -> str:
    """Return the declaration of a called function."""
    head, given = call.removeprefix("call ").rstrip(")").split("(")
    kinds = ", ".join(x.split()[0] for x in given.split(", ") if x)
    pure = " nounwind willreturn memory(none)" if "@llvm." in head else ""
    return f"declare {head}({kinds}){pure}"
