"""What the older tutorial "Automatic differentiation and gradient tape" states.

Persistent and nested tapes are in the introduction, in the same words. The programs are run with
gradtape's names and with TensorFlow's: `lib` is one, then the other.
"""

from __future__ import annotations

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
