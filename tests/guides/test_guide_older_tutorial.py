"""What the older tutorial "Automatic differentiation and gradient tape" states.

Its programs are run with gradtape's names and with TensorFlow's: `lib` is one, then the other.
"""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def square_of_a_sum(lib):
    x = lib.ones((2, 2))
    with lib.GradientTape() as tape:
        tape.watch(x)
        y = lib.sum(x)
        z = lib.multiply(y, y)
    return tape, x, y, z


def test_gradient_of_a_square_of_a_sum(square_of_a_sum) -> None:
    tape, x, _, z = square_of_a_sum
    dz_dx = tape.gradient(z, x)
    for i in (0, 1):
        for j in (0, 1):
            assert dz_dx[i][j].numpy() == 8.0


def test_gradient_of_the_intermediate_sum(square_of_a_sum) -> None:
    tape, _, y, z = square_of_a_sum
    assert tape.gradient(z, y).numpy() == 8.0


def test_several_gradients_of_one_computation(lib) -> None:
    x = lib.constant(3.0)
    with lib.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy() == 108.0
    assert tape.gradient(y, x).numpy() == 6.0


def test_loops_and_branches(lib) -> None:
    def f(x, n):
        output = 1.0
        for i in range(n):
            if i > 1 and i < 5:
                output = lib.multiply(output, x)
        return output

    def grad(x, n):
        with lib.GradientTape() as tape:
            tape.watch(x)
            out = f(x, n)
        return tape.gradient(out, x)

    x = lib.as_tensor(2.0)
    assert grad(x, 6).numpy() == 12.0
    assert grad(x, 5).numpy() == 12.0
    assert grad(x, 4).numpy() == 4.0


def test_operations_inside_an_outer_tape_are_recorded_by_it(lib) -> None:
    x = lib.Variable(1.0)
    with lib.GradientTape() as outer:
        with lib.GradientTape() as inner:
            y = x * x * x
        dy_dx = inner.gradient(y, x)
    d2y_dx2 = outer.gradient(dy_dx, x)
    assert dy_dx.numpy() == 3.0
    assert d2y_dx2.numpy() == 6.0
    np.testing.assert_array_equal(y, 1.0)
