"""The fuzzer of AutoGraph: a short run of it, and that it finds what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("malt", reason='AutoGraph needs pip install "gradtape[autograph]"')

from fuzz.autograph import BAD, Line, Program, compared, reduced, written
from fuzz.autograph.prelude import PRELUDE
from fuzz.autograph.states import STATES
from fuzz.commands import main


def program(*lines: str, told: str = "a") -> Program:
    texts = [(len(text) - len(text.lstrip(" "))) // 4 for text in lines]
    parts = (Line(1 + depth, text.lstrip(" ")) for depth, text in zip(texts, lines, strict=True))
    return Program(0, (Line(1, "a, b = x[0], x[1]"), *parts), (told,))


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_do_what_python_does_or_are_refused(seed: int) -> None:
    drawn = written(seed)
    outcome, said, _ = compared(drawn)
    assert outcome not in BAD, f"{outcome}: {said}\n{drawn.text}"


def test_the_same_seed_draws_the_same_program() -> None:
    assert written(7) == written(7)
    assert written(7) != written(8)


def test_a_program_without_traced_conditions_is_the_same() -> None:
    lines = ("l = [a]", "for i in range(2):", "    l.append(a * i)")
    assert compared(program(*lines, told="l"))[0] == "same"


def test_a_program_that_raises_is_no_difference() -> None:
    assert compared(program('raise ValueError("no")'))[0] == "both raise"


# a trace and Python see different numbers
OFF = "off = (2.0, 1.0) if type(x.array).__name__ == 'Symbol' else (1.0, 0.0)"
WRONG = {
    "a value": ("a = a * off[0]", "different"),
    "a derivative": ("a = a + gt.stop_gradient(a * off[1]) - a * off[1]", "different"),
    "an error of Python": ("a = {0.0: a}[off[1]]", "raw error"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_and_reduced(name: str) -> None:
    line, outcome = WRONG[name]
    found = program(OFF, "c = b * 2.0", "for i in range(2):", "    c = c + a", line)
    small = reduced(found)
    assert (compared(found)[0], compared(small)[0]) == (outcome, outcome)
    assert [one.text for one in small.lines][1:] == [OFF, line]


def test_the_command_prints_how_many_came_out(capsys: pytest.CaptureFixture[str]) -> None:
    main(["autograph", "--examples", "2", "--seed", "3", "--keep-going", "--shrink", "0"])
    assert "autograph: 2 in" in capsys.readouterr().out


@pytest.mark.parametrize("change", STATES["numpy"].changes)
def test_no_program_frees_memory_that_is_in_use(change: str) -> None:
    """NumPy would write through the view afterwards, and some later line would crash."""
    scope: dict[str, Any] = {"__name__": __name__}
    exec(PRELUDE, scope)
    exec("\n".join(STATES["numpy"].made), scope)
    size = scope["w"].nbytes
    assert scope["u"].base is scope["w"]
    for line in change.format(v="1.5", i=1).split("\n"):
        exec(line, scope)
        assert scope["u"].base.nbytes == size
