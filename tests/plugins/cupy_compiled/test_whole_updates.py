"""Eager updates of many variables are one kernel, with the numbers of the formula as written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import training as t
from gradtape.plugins.cupy.backend import CupyBackend
from gradtape.plugins.cupy.fused.updates import updating

#: Every optimizer of gradtape whose formula is elementwise, by name.
OPTIMIZERS: dict[str, Callable[..., Any]] = {
    name: kind
    for name, kind in vars(t).items()
    if isinstance(kind, type)
    and issubclass(kind, t.Optimizer)
    and getattr(kind.update, "by_blocks", False)
}


class Halving(t.Optimizer):
    """An optimizer of a third party, which computes with its settings."""

    slots = ("last",)

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        return rate, 1.0 / (step + 2.0)

    @t.optimizers.by_blocks
    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        rate, share = settings
        changed = value - gradient * (rate * (1.0 - share) / 3.0)
        return changed * 0.5 + state[0] * share, (value,)


def steps(make: Callable[[], Any], dtype: str, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Return all variables and slots after some steps."""
    random = np.random.default_rng(0)
    variables = [gt.Variable(random.standard_normal(s).astype(dtype)) for s in shapes]
    optimizer = make()
    for _ in range(3):
        gradients = [gt.constant(random.standard_normal(s).astype(dtype)) for s in shapes]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
    held = [v for slot in optimizer.slots for v in getattr(optimizer, slot)]
    return [v.value.to("numpy").numpy() for v in [*variables, *held]]


def shapes_of(random: np.random.Generator, count: int) -> list[tuple[int, ...]]:
    return [tuple(random.integers(1, 6, size=random.integers(0, 3))) for _ in range(count)]


def compare(make: Callable[[], Any], dtype: str, shapes: list[tuple[int, ...]]) -> None:
    """Compare an update by a kernel with the formula as written, bit for bit."""
    with gt.backend("cupy"):
        mine = steps(make, dtype, shapes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CupyBackend, "updating", lambda self, formula: None)
            right = steps(make, dtype, shapes)
    assert all(np.isfinite(x).all() for x in right)
    for one, two in zip(mine, right, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.filterwarnings("ignore:.*is float16")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", [*OPTIMIZERS, "Halving"])
def test_updates_have_the_numbers_of_the_formula(cupy: Any, name: str, dtype: str) -> None:
    make = Halving if name == "Halving" else OPTIMIZERS[name]
    random = np.random.default_rng(len(name))
    compare(lambda: make(0.01), dtype, shapes_of(random, int(random.integers(1, 12))))


@pytest.mark.parametrize(
    "options",
    [
        {"weight_decay": 0.1},
        {"use_ema": True, "ema_momentum": 0.9},
        {"clipvalue": 0.3},
        {"global_clipnorm": 0.5},
        {"gradient_accumulation_steps": 2},
    ],
)
def test_options_have_the_numbers_of_the_formula(cupy: Any, options: dict[str, Any]) -> None:
    shapes = shapes_of(np.random.default_rng(5), 5)
    compare(lambda: t.Adam(0.01, **options), "float32", shapes)


@pytest.mark.parametrize("count", [1, 2, 3, 127, 128, 129, 300])
def test_any_number_of_variables(cupy: Any, count: int) -> None:
    compare(lambda: t.Adam(0.01), "float32", shapes_of(np.random.default_rng(count), count))


def test_a_step_is_one_kernel_without_copies(cupy: Any) -> None:
    with gt.backend("cupy"):
        variables = [gt.Variable(np.ones(s, "float32")) for s in ((4, 3), (3,), (), (2, 2))]
        gradients = [gt.constant(np.ones(v.shape, "float32")) for v in variables]
        optimizer = t.Adam(0.1)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        before = cupy.seen.launches
        with cupy.counting() as copies:
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
        assert (cupy.seen.launches - before, dict(copies)) == (1, {})


def test_models_of_other_shapes_share_kernels(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    plain = cupy.RawKernel.compile
    monkeypatch.setattr(
        cupy.RawKernel, "compile", lambda self: made.append(self.name) or plain(self)
    )
    with gt.backend("cupy"):
        for count in (5, 6, 8):
            steps(lambda: t.RMSprop(0.01), "float32", shapes_of(np.random.default_rng(0), count))
    assert len([name for name in made if "_update_" in name]) == 1


def test_gradients_of_any_layout(cupy: Any) -> None:
    with gt.backend("cupy"):
        variable = gt.Variable(np.zeros((3, 2), "float32"))
        gradient = gt.transpose(gt.constant(np.arange(6, dtype="float32").reshape(2, 3)))
        t.SGD(1.0).apply_gradients([(gradient, variable)])
        assert variable.value.tolist() == (-np.arange(6).reshape(2, 3).T).tolist()


def test_a_formula_without_text_runs_as_written(cupy: Any) -> None:
    class Odd(t.Optimizer):
        @t.optimizers.by_blocks
        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            return np.float_power(value, 1.0) - gradient * settings[0], ()

    with gt.backend("cupy"):
        variable = gt.Variable(np.ones(2, "float32"))
        Odd(0.5).apply_gradients([(gt.constant(np.ones(2, "float32")), variable)])
        assert variable.value.tolist() == [0.5, 0.5]


def test_a_ufunc_without_text_has_no_kernel(cupy: Any) -> None:
    from gradtape.training.optimizers.rules import FlatFormula

    def formula(ufunc: np.ufunc) -> FlatFormula:
        return FlatFormula(np.dtype("float32"), 2, 0, ((ufunc, (0, 1)),), (2,))

    assert updating(cupy, formula(np.add)) is not None
    assert updating(cupy, formula(np.nextafter)) is None


class Chosen(t.Optimizer):
    """An optimizer of a third party whose formula depends on an attribute."""

    slots = ("last",)
    FORMULAS = (
        lambda g, last: g * 1.0,
        lambda g, last: g * last,  # the state's place is 1
        lambda g, last: (g - g) * 0.0,
        lambda g, last: (g - g) * -0.0,
    )

    def __init__(self, number: int) -> None:
        super().__init__(0.1)
        self.number = number

    @t.optimizers.by_blocks
    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        change = Chosen.FORMULAS[self.number](gradient, state[0])
        return change - value * 0.5, (gradient + change,)


@pytest.mark.parametrize("order", [1, -1])
def test_formulas_that_differ_in_a_place_or_a_sign_have_their_own_kernels(
    cupy: Any, order: int
) -> None:
    for number in range(4)[::order]:
        compare(lambda number=number: Chosen(number), "float32", [(3,), (2, 2)])


def test_formulas_of_the_same_steps_are_equal(cupy: Any) -> None:
    from gradtape.training.optimizers.rules import FlatFormula

    made = [
        FlatFormula.of(Chosen(number).update, np.dtype("float32"), 1, 1)
        for number in (0, 1, 2, 3, 0)
    ]
    assert len(set(made)) == 4
    assert made[0] == made[4]
    assert made[0] != made[1]
