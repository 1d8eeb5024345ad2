"""Gradient rules that call their own function, in files: every order, in a process without them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.saving import UntraceableGradient

X, Y = 0.7, -0.4


@gt.custom_gradient
def root(x: Any) -> Any:
    y = gt.stop_gradient(x)
    for _ in range(30):
        y = 0.5 * (y + x / y)
    return y, lambda u: u / (2.0 * root(x))


@gt.custom_gradient
def sine(x: Any) -> Any:
    return gt.sin(x), lambda u: u * cosine(x)


@gt.custom_gradient
def cosine(x: Any) -> Any:
    return gt.cos(x), lambda u: -u * sine(x)


@gt.custom_gradient
def counted(x: Any, n: int) -> Any:
    return gt.sin(x + n * (np.pi / 2)), lambda u: u * counted(x, n + 1)


SIGNATURE = [gt.TensorSpec([None, "n"], "float64")]


class Curves(gt.Module):
    def __init__(self) -> None:
        super().__init__("curves")
        self.scale = gt.Variable(1.5, dtype="float64")

    @gt.function(input_signature=SIGNATURE)
    def root(self, x: Any) -> Any:
        return root(x) + root(self.scale * x)

    @gt.function(input_signature=SIGNATURE)
    def two(self, x: Any) -> Any:
        return sine(x) * cosine(x + 1.0)

    @gt.function(input_signature=SIGNATURE)
    def counted(self, x: Any) -> Any:
        return counted(x, 0)

    @gt.function(input_signature=SIGNATURE)
    def captured(self, x: Any) -> Any:
        c = gt.stop_gradient(gt.sum(x)) * 0.0 + 2.0

        @gt.custom_gradient
        def power(x: Any) -> Any:
            return gt.exp(x), lambda u: u * c * power(x)

        return power(x)

    @gt.function(input_signature=SIGNATURE)
    def branches(self, x: Any) -> Any:
        chosen = gt.vmap(lambda x: gt.cond(x > 0.0, lambda: sine(x), lambda: x * 1.0))
        return chosen(gt.reshape(x, [-1]))


TRUE = {
    "root": lambda x: x**0.5 * (1 + 1.5**0.5),
    "two": lambda x: gt.sin(x) * gt.cos(x + 1.0),
    "counted": gt.sin,
    "branches": gt.sin,
}

PROGRAM = """
import sys
import numpy as np
import gradtape as gt

loaded = gt.load(sys.argv[1])
x = gt.constant(np.full((1, 2), 0.7))
for name in ("root", "two", "counted", "captured", "branches"):
    f = getattr(loaded, name)
    found = []
    for order in range(4):
        found.append(np.ravel(f(x))[0])
        f = (lambda f: gt.grad(lambda x: gt.sum(f(x))))(f)
    print(name, *[repr(float(y)) for y in found])
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recursive") / "curves.h5"
    gt.save(Curves(), path)
    return path


def expected(name: str) -> list[float]:
    if name == "captured":  # c times that of exp, at every order
        return [float(np.exp(X) * 2.0**k) for k in range(4)]
    f, found = TRUE[name], []
    for _ in range(4):
        found.append(f(gt.constant(np.array(X))).item())
        f = gt.grad(f)
    return found


def test_orders_to_three_in_a_fresh_process(saved: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.h5"
    gt.save(gt.load(saved), again)
    for path in (saved, again):
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(path)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for line in told.splitlines():
            name, *values = line.split()
            np.testing.assert_allclose([*map(float, values)], expected(name), rtol=1e-9)
        assert len(told.splitlines()) == 5


@pytest.mark.parametrize("name", ["root", "two", "counted", "branches"])
def test_a_loaded_function_is_transformed_like_its_source(saved: Path, name: str) -> None:
    loaded = getattr(gt.load(saved), name)
    xs = gt.constant(np.array([[[X]], [[X]]]))
    f = gt.vmap(lambda x: gt.grad(lambda x: gt.sum(gt.grad(lambda x: gt.sum(loaded(x)))(x)))(x))
    second = expected(name)[2]
    for g in (f, gt.function(f)):
        np.testing.assert_allclose(np.ravel(g(xs)), [second] * 2, rtol=1e-9)
    restored = pickle.loads(pickle.dumps(loaded))
    slope = gt.grad(lambda x: gt.sum(gt.grad(lambda x: gt.sum(restored(x)))(x)))
    np.testing.assert_allclose(np.ravel(slope(xs[0])), [second], rtol=1e-9)


def test_commands(saved: Path, tmp_path: Path) -> None:
    assert gt.saving.verify(saved).ok
    found = gt.saving.inspect(saved)
    assert [x for x in found.rules if "gradient of sine" in x.traces[0].arguments[0]]
    assert "rules.0" in found.table()
    again = tmp_path / "again.h5"
    gt.save(gt.load(saved), again)
    assert not gt.saving.diff(saved, again)
    text = str(gt.load(saved).two.concrete_functions[0].graph)
    assert "the gradient of sine" in text


def test_without_custom_gradients(tmp_path: Path) -> None:
    gt.save(Curves(), tmp_path / "values.h5", custom_gradients=False)
    loaded = gt.load(tmp_path / "values.h5")
    x = gt.constant(np.full((1, 1), X))
    np.testing.assert_allclose(loaded.counted(x).item(), np.sin(X))
    with pytest.raises(LookupError, match="counted"):
        gt.grad(lambda x: gt.sum(loaded.counted(x)))(x)


def test_a_recursive_rule_that_cannot_be_traced_is_refused(tmp_path: Path) -> None:
    @gt.custom_gradient
    def reads(x: Any) -> Any:
        return gt.exp(x), lambda u: u * reads(x) * float(u)

    class Bad(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([])])
        def f(self, x: Any) -> Any:
            return reads(x)

    with pytest.raises(UntraceableGradient, match="reads"):
        gt.save(Bad(), tmp_path / "bad.h5")


def test_a_loaded_function_takes_the_dtypes_that_its_source_takes(tmp_path: Path) -> None:
    class Model(gt.Module):
        @gt.function
        def f(self, x: Any) -> Any:
            return sine(x)

    model = Model()
    model.f(gt.constant([X]))
    gt.save(model, tmp_path / "model.h5")
    x = gt.constant([X], dtype="float64")
    slope = gt.grad(lambda x: gt.sum(gt.grad(lambda x: gt.sum(loaded.f(x)))(x)))
    loaded = gt.load(tmp_path / "model.h5")
    np.testing.assert_allclose(slope(x), -np.sin([X]), rtol=1e-12)
