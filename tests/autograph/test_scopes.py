# ruff: noqa: SIM108
"""What ends with a traced statement: it may be any object, and differ from step to step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

pytest.importorskip("malt", reason='AutoGraph needs pip install "gradtape[autograph]"')

POINTS = ([0.6, -5.0, 2.0], [-0.7, 0.4, -1.0], [3.0, 1.0, 0.2])
PROGRAMS: list[Callable[[Any], Any]] = []
v = gt.Variable(2.0, dtype="float64")


def program(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(f)
    return f


class Scale:
    def __init__(self, by):
        self.by = by

    def of(self, x):
        return x * self.by


@program
def tapes_of_steps(x):
    y = x[0]
    for e in x:
        with gt.GradientTape() as tape:
            loss = v * v * e
        y = y + tape.gradient(loss, v)
    return y


@program
def tapes_of_both_branches(x):
    if x[0] > 0:
        with gt.GradientTape() as tape:
            loss = v * v * x[0]
        return tape.gradient(loss, v)
    with gt.GradientTape() as tape:
        loss = v * x
    return tape.gradient(loss, v)


@program
def tapes_in_tapes_of_steps(x):
    y = x[0]
    with gt.GradientTape() as outer:
        for e in x:
            try:
                with gt.GradientTape() as tape:
                    if e > 0:
                        loss = v * v * v * e
                    else:
                        loss = v * v * e
                slope = tape.gradient(loss, v)
            finally:
                y = y * 0.5
            y = y + slope
    return outer.gradient(y, v)


@program
def tapes_until_an_end(x):
    y, n = x[0], 0
    while abs(y + 4.0) > 1.0:
        with gt.GradientTape() as tape:
            tape.watch(y)
            loss = (y + 4.0) ** 2
        y, n = y - 0.1 * tape.gradient(loss, y), n + 1
    return y, n


@program
def sizes_inside_with(x):
    with contextlib.nullcontext():
        if x[0] > 0:
            part = x * 2.0
            y = gt.sum(part)
        else:
            part = x[0]
            y = part
    return y


@program
def objects_in_generators(x):
    y = x[0]
    for e in x:
        scale = Scale(e)
        y = y + sum(scale.of(w) for w in (1.0, 2.0))
    return y


@program
def objects_in_lambdas(x):
    if x[1] > 0:
        scale = Scale(2.0)
        of = lambda w: scale.of(w)  # noqa: E731
        y = of(x[0])
    else:
        scale = Scale(x)
        of = lambda w: scale.of(w)  # noqa: E731
        y = gt.sum(of(x[0]))
    return y


@program
def objects_in_inner_functions(x):
    def total(x):
        y = x[0]
        for e in x:
            scale, rows = Scale(e), [1.0]
            y = y + scale.of(e) * rows[0]
        if y > 0:
            scale = Scale(1.0)
        else:
            scale = Scale(y)
            scale.by = scale.by * 2.0
            y = scale.of(y)
        return y

    return total(x) + total(x * 2.0)


@program
def one_name_inside_and_outside(x):
    k = 0.0

    def add(e):
        nonlocal k
        for w in x:
            if e > w:
                k = k + w

    for e in x:
        add(e)
    return k


@program
def values_before_a_handled_error(x):
    y, n = x[0], 0.0
    try:
        if y > 0:
            y, n = y * 2.0, n + 1.0
        y = y + [][0]
    except IndexError:
        if x[1] > 0:
            n = n + 5.0
    finally:
        y = y + n
    with contextlib.suppress(KeyError):
        for e in x:
            if e > 0:
                y = y + e
        y = y * {}["none"]
    return y


@program
def lambdas_made_before(x):
    late = lambda: k * 2.0  # noqa: E731
    if x[0] > 0:
        k = 1.0
    else:
        k = 2.0
    return late()


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("error:autograph")
def test_what_ends_with_a_statement_may_be_anything(f: Callable[[Any], Any]) -> None:
    traced = gt.function(f, autograph=True)
    for point in POINTS:
        x = gt.constant(point, dtype="float64")
        for found, right in zip(np.ravel(traced(x)), np.ravel(f(x)), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-12)
