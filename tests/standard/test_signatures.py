"""Every function of the array API standard takes the arguments that the standard lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt

LINES = (Path(__file__).parent / "signatures.txt").read_text(encoding="utf-8").splitlines()
SIGNATURES = dict(line[:-1].split("(", 1) for line in LINES if line[0] != "#" and "()." not in line)
OF_INFO = dict(line[:-1].split("().")[1].split("(", 1) for line in LINES if "()." in line)
#: NumPy's own functions, in C and without signatures: a call instead.
CALLS: dict[str, Callable[[], Any]] = {
    "can_cast": lambda: gt.can_cast(gt.int8, gt.int16),
    "result_type": lambda: gt.result_type(gt.int8, gt.int16),
}


def check(function: Any, text: str) -> None:
    """Bind the arguments of a signature in each way that it allows."""
    spaces: dict[str, Any] = {}
    exec(f"def f({text.replace('=', '=None')}): ...", spaces)
    parameters = list(inspect.signature(spaces["f"]).parameters.values())
    kinds, taken = inspect.Parameter, inspect.signature(function)
    first = [p for p in parameters if p.kind is kinds.POSITIONAL_ONLY]
    several = ["x", "y"] if any(p.kind is kinds.VAR_POSITIONAL for p in parameters) else []
    either = [p.name for p in parameters if p.kind is kinds.POSITIONAL_OR_KEYWORD]
    named = [p.name for p in parameters if p.kind is kinds.KEYWORD_ONLY]
    required = [p.name for p in first if p.default is p.empty]
    for count in range(len(either) + 1):
        positional, rest = either[:count], either[count:]
        everything = [*(p.name for p in first), *several, *positional]
        given = taken.bind(*everything, **{name: name for name in rest + named}).arguments
        for name in positional + rest + named:
            if given.get(name) != name:
                raise TypeError(f"{name} becomes another parameter: {given}")
        for name in named:  # alone, too
            taken.bind(*required, *several, *positional, **dict.fromkeys([*rest, name]))
    taken.bind(*required, *several, **dict.fromkeys(either))


@pytest.mark.parametrize("name", SIGNATURES)
def test_functions_take_the_arguments_of_the_standard(name: str) -> None:
    if name in CALLS:
        CALLS[name]()
        return
    place = gt.constant([1.0]) if name.startswith("Tensor.") else gt
    check(attrgetter(name.removeprefix("Tensor."))(place), SIGNATURES[name])


@pytest.mark.parametrize("name", OF_INFO)
def test_inspection_takes_the_arguments_of_the_standard(name: str) -> None:
    check(getattr(gt.__array_namespace_info__(), name), OF_INFO[name])


def test_a_missing_argument_is_noticed() -> None:
    check(gt.sort, "x, /, *, axis=, descending=, stable=")
    for wrong in ("x, /, *, order=", "x, /, axis, stable", "x, y, z, w, /"):
        with pytest.raises(TypeError):
            check(gt.sort, wrong)
