"""The fuzzer of programs: pairs of transformations, reads of values, and memory of batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fuzz import drawing, modes, programs
from fuzz.compositions import memory, pairs, reads
from fuzz.measuring import Case
from fuzz.program import Line, Program

import gradtape as gt

X = np.array([0.6, 0.9])
W = np.array([1.1, -0.4])
LINES = (
    Line("v0", "cubed({0}) + gt.recompute_grad(lambda a: gt.tanh(a * a))({0})", ("x0",)),
    Line("v1", "gt.cond(gt.sum({0}) > 0.1, lambda a: a * gt.sin(a), lambda a: a, {0})", ("v0",)),
    Line("v2", "gt.scan(lambda c, a: (gt.tanh(c + a), c * a), gt.sum({0}), {0})[1]", ("v1",)),
    Line("v3", "gt.sin(w0) * {0}", ("v2",)),
)
PROGRAM = Program({"x0": X}, {"w0": W}, LINES, ("v3",))


def differences(case: Case, outer: str, inner: str) -> list[str]:
    found = (modes._different(case, *pair) for pair in pairs.pair(case, outer, inner))
    return [said for said in found if said is not None]


@pytest.mark.parametrize(("outer", "inner"), pairs.PAIRS)
def test_every_pair_of_transformations_is_right(outer: str, inner: str) -> None:
    case = Case(PROGRAM)
    assert list(pairs.pair(case, outer, inner))
    assert differences(case, outer, inner) == []


def test_a_transformation_that_is_wrong_inside_another_is_found(monkeypatch: Any) -> None:
    def wrong(f: Any) -> Any:
        return lambda x: gt.stop_gradient(gt.jvp(f, (x,), (pairs._direction(x),))[1])

    monkeypatch.setitem(pairs.TRANSFORMATIONS, "jvp", (wrong, 1))
    assert differences(Case(PROGRAM), "vmap", "jvp")[0].startswith("vmap of jvp, gradient 1 is")


@pytest.mark.parametrize("seed", range(100, 108))
def test_pairs_of_random_programs_are_right(seed: int) -> None:
    assert list(programs.wrong(drawing.drawn(seed), ["pairs"])) == []


# -- reads -----------------------------------------------------------------------------------------


def of_read(read: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    monkeypatch.setattr(reads, "READS", [read])
    line = Line("v0", "gt.sin({0}) * {1}", ("x0", "x0"))
    return list(programs.wrong(Program({"x0": X}, {}, (line,), ("v0",)), ["reads"]))


@pytest.mark.parametrize("read", reads.READS)
def test_a_read_is_followed_refused_or_warned_of(read: str, monkeypatch: Any) -> None:
    assert of_read(read, monkeypatch) == []


def test_a_read_that_loses_a_gradient_in_silence_is_found(monkeypatch: Any) -> None:
    ((mode, said),) = of_read("gt.constant(x.numpy())", monkeypatch)
    assert mode == "reads"
    assert "gradient without a warning is" in said


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_a_chain_takes_as_little_memory_in_vmap_as_in_a_batch(seed: int) -> None:
    case = Case(Program({"x0": X}, {}, (), ("x0",), seed))
    assert modes.off(case, "memory") == (None, True)


def test_a_gradient_per_example_is_found(monkeypatch: Any) -> None:
    rule = "gt.custom_gradient(lambda a, b: (a @ b, lambda g: (b @ g, a[:, None] * g)))"
    chain = memory.Chain("matrix", f"{rule}(x, w)", "x @ w", "grad", 0)
    monkeypatch.setattr(memory, "MORE", 0)
    monkeypatch.setattr(memory, "chain", lambda seed: chain)
    said, _ = modes.off(Case(Program({"x0": X}, {}, (), ("x0",))), "memory")
    assert said is not None
    assert said.startswith("MemoryError: grad of vmap of lambda x, w, i: gt.custom_gradient(")
