"""The fuzzer of programs: a short run of it, and that it finds and reduces what is wrong."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from fuzz import drawing, program, programs
from fuzz.commands import main
from fuzz.modes import MODES
from fuzz.open_sizes import misinferred
from fuzz.shrinking import reduced
from fuzz.size_templates import SIZES
from fuzz.templates import TEMPLATES

import gradtape as gt

ALL = [programs.DIFFERENCES, *(mode for mode in MODES if mode != "reads")]
ALL_TEMPLATES = [*(template for template, _ in TEMPLATES), *SIZES]


@pytest.mark.parametrize("seed", range(6))
def test_a_random_program_is_right_in_every_mode(seed: int) -> None:
    assert list(programs.wrong(drawing.drawn(seed), ALL)) == []


def test_the_same_seed_draws_the_same_program() -> None:
    assert drawing.drawn(7).source() == drawing.drawn(7).source()
    assert drawing.drawn(7).source() != drawing.drawn(8).source()


def test_every_template_makes_a_line() -> None:
    made = set()
    rng = random.Random(0)
    known = {
        **{f"x{i}": np.sin(np.arange(3.0) + i) for i in range(3)},
        **{f"x{i}": np.cos(np.arange(9.0) * (i - 2)).reshape(3, 3) + 2 * np.eye(3) for i in (3, 4)},
        "x5": np.array([0.4 + 0.3j, 0.2 - 0.7j, 1.0j]),
        "x6": np.array([1.4]),
        "x7": np.array(0.6),
        "x8": np.array([[0.7]]),
    }
    scope = dict(program._helpers(), **{n: gt.constant(x) for n, x in known.items()})
    for number, template in enumerate(ALL_TEMPLATES):
        for _ in range(60):
            line = drawing._op_line(rng, known, 0, template)
            if line is not None and drawing._run(line, scope) is not None:
                made.add(number)
                break
    missing = [t for i, t in enumerate(ALL_TEMPLATES) if i not in made]
    assert missing == []


def test_a_wrong_rule_is_found_reduced_and_printed(monkeypatch, capsys) -> None:
    wrong = program.PRELUDE["cubed"].replace("3.0 * g", "2.0 * g")
    monkeypatch.setitem(program.PRELUDE, "cubed", wrong)
    seed = next(s for s in range(300) if "cubed(" in drawing.drawn(s).source())
    arguments = ["programs", "--seed", str(seed), "--programs", "1", "--mode", "differences"]
    assert main(arguments) == 1
    said = capsys.readouterr().out
    assert said.count(" = cubed(") == 1
    assert said.count("    v") == 1  # one line is left
    assert "unexplained: 1" in said
    shown = said[said.index("import numpy") : said.index("programs: 1")]
    with pytest.raises(AssertionError, match="the tape says"):
        exec(shown, {})


def test_reducing_keeps_what_fails() -> None:
    drawn = next(p for p in map(drawing.drawn, range(300)) if "gt.sin(" in p.source())
    small = reduced(drawn, lambda other: "gt.sin(" in other.source())
    assert len(small.lines) == 1
    assert all(x.size == 1 for x in small.inputs.values())


def of_rows(text: str) -> program.Program:
    x = np.array([[0.3, 0.7], [0.9, -0.4]])
    line = program.Line("v0", text, ("x0",))
    return program.Program({"x0": x}, {}, (line,), ("v0",))


@pytest.mark.parametrize("mode", ["unknown sizes", "vmap of unknown sizes"])
def test_a_trace_that_is_wrong_at_another_size_is_found(mode: str) -> None:
    frozen = of_rows("{0} * (2.0 if str({0}.shape[0]) in '2mn' else 3.0)")
    ((found, said),) = programs.wrong(frozen, [mode])
    assert found == mode
    assert "value is" in said
    assert list(programs.wrong(of_rows("{0} / {0}.shape[0]"), [mode])) == []


def test_a_shape_that_was_inferred_wrong_is_found() -> None:
    x = gt.constant(np.ones((2, 3)))
    signature = [gt.TensorSpec([None, 3], x.dtype)]
    traced = gt.function(lambda x: gt.concatenate([x, x]), input_signature=signature)
    concrete = traced.get_concrete_function()
    assert misinferred(concrete, [x]) is None
    (made,) = concrete.graph.outputs
    rows, columns = made.shape
    made.shape = (rows + 1, columns)
    said = misinferred(concrete, [x])
    assert said == "inferred shape of concatenate: (2*n + 1, 3) is (5, 3) for (4, 3)"


def test_refusals_are_counted_by_their_text() -> None:
    refusals = Counter[str]()
    refused = of_rows("{0} if {0}.shape[0] > 1 else {0} * 2.0")
    assert list(programs.wrong(refused, ["unknown sizes"], refusals=refusals)) == []
    ((text, count),) = refusals.items()
    assert count == 1
    assert text.startswith("unknown sizes: ")
    assert "is not known while a function is traced" in text


def test_an_executor_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = gt.registry().executors["plain"]

    def wrong(graph: Any) -> Any:
        run = right(graph)
        return lambda arrays: [y * (1.0 + 1e-6) for y in run(arrays)]

    monkeypatch.setitem(gt.registry().executors, "wrong", wrong)
    ((mode, said),) = programs.wrong(of_rows("gt.sin({0})"), ["executors"])
    assert mode == "executors"
    assert said.startswith("wrong, value is")
    monkeypatch.setitem(gt.registry().executors, "wrong", right)
    assert list(programs.wrong(of_rows("gt.sin({0})"), ["executors"])) == []
