"""Optimizers of one's own: formulas in gradtape's functions, and attributes that nothing reads."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
from gradtape import training
from gradtape.training.optimizers import by_blocks


class Sign(training.Optimizer):
    slots = ("largest",)

    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        largest = gt.maximum(state[0], gt.abs(gradient))
        return value - settings[0] * gt.sign(gradient), (largest,)


class Marked(Sign):
    @by_blocks
    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        return super().update(value, gradient, state, settings)


class Normed(training.Optimizer):
    """A formula that is not elementwise."""

    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        assert value.shape == gradient.shape
        return value - settings[0] * gradient / gt.linalg.norm(gradient), state


OPTIONS: list[dict[str, Any]] = [
    {},
    {"weight_decay": 0.1},
    {"use_ema": True},
    {"gradient_accumulation_steps": 2},
    {"clipvalue": 0.5},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("size", [3, 60_000])  # in one block, and in several
@pytest.mark.parametrize("kind", [Sign, Marked, Normed])
def test_a_formula_in_gradtapes_functions_is_the_same_in_python_and_in_a_trace(
    kind: Any, size: int, options: Any
) -> None:
    found = []
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=s).astype("float32") for s in ((size,), (2, 2), ())]
    for traced in (False, True):
        variables = [gt.Variable(np.ones(g.shape, "float32")) for g in gradients]
        optimizer = kind(0.1, **options)

        def step(optimizer: Any = optimizer, variables: Any = variables) -> None:
            optimizer.apply_gradients(list(zip(map(gt.constant, gradients), variables)))

        run = gt.function(step) if traced else step
        for _ in range(3):
            run()
        arrays = [v.array for v in variables]
        assert all(isinstance(x, (np.ndarray, np.generic)) for x in arrays)
        assert {x.dtype.name for x in arrays} == {"float32"}
        found.append([v.numpy() for v in variables])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5)
        assert not np.array_equal(one, np.ones_like(one))


def test_a_result_of_another_shape_is_refused_and_another_dtype_is_cast() -> None:
    class Sum(training.Optimizer):
        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            return gt.sum(value), state

    class Wide(training.Optimizer):
        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            return value - np.float64(0.5) * np.asarray(gradient, "float64"), state

    w = gt.Variable(np.ones(2, "float32"))
    with pytest.raises(ValueError, match=r"Optimizer.update must return .* shape \(2,\)"):
        Sum(0.1).apply_gradients([(gt.ones(2), w)])
    assert w.numpy().tolist() == [1.0, 1.0]
    Wide(0.1).apply_gradients([(gt.ones(2), w)])
    assert w.dtype == "float32"
    assert w.numpy().tolist() == [0.5, 0.5]


RESULTS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "one slot": (lambda new, state: (new, (state[0],)), "a state of 1"),
    "no slot": (lambda new, state: (new, ()), "a state of 0"),
    "a slot more": (lambda new, state: (new, (*state, new)), "a state of 3"),
    "a slot that is no tuple": (lambda new, state: (new, state[0]), "the state "),
    "only the value": (lambda new, state: new, "but returned "),
}


@pytest.mark.parametrize("options", [{}, {"use_ema": True}, {"weight_decay": 0.1}])
@pytest.mark.parametrize("size", [2, 60_000])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("wrong", RESULTS)
def test_a_state_of_another_length_is_refused(
    wrong: str, marked: bool, traced: bool, size: int, options: Any
) -> None:
    result, words = RESULTS[wrong]

    def update(self: Any, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        return result(value - settings[0] * gradient, state)

    body = {"slots": ("one", "two"), "update": by_blocks(update) if marked else update}
    optimizer = type("Mine", (training.Optimizer,), body)(0.1, **options)
    w = gt.Variable(np.ones(size, "float32"))

    def step() -> None:
        optimizer.apply_gradients([(gt.ones(size), w)])

    with pytest.raises(ValueError, match=rf"Optimizer.update must return .*\(2\).*{words}"):
        (gt.function(step) if traced else step)()
    assert w.numpy().tolist() == [1.0] * size


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lr", "Did you mean learning_rate"),
        ("learning_rte", "Did you mean learning_rate"),
        ("clip_norm", "Did you mean clipnorm"),
        ("momentum", "Adam has no attribute 'momentum'.*beta_1"),
    ],
)
def test_a_setting_under_a_wrong_name_gives_a_warning(name: str, words: str) -> None:
    optimizer = training.Adam(0.1)
    with pytest.warns(UserWarning, match=words):
        setattr(optimizer, name, 0.01)


def test_own_attributes_give_none() -> None:
    class Mine(training.Adam):
        def __init__(self, lr: float) -> None:
            super().__init__(lr)
            self.lr = lr

        def later(self) -> None:
            self.momentum = 0.5

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer = Mine(0.1)
        optimizer.later()
        optimizer.lr = 0.2
        optimizer.learning_rate = 0.2
        optimizer.beta_1 = 0.8
        optimizer.note = "mine"
        keras = tf.keras.optimizers.Adam(0.1)
        keras.lr = 0.01
    assert float(keras.learning_rate) == pytest.approx(0.01) == float(keras.lr)


def test_an_attribute_that_the_formula_reads_gives_none() -> None:
    class Reading(training.Optimizer):
        slots = ("velocity",)
        momentum: float

        def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
            return rate, getattr(self, "beta_1", 1.0)

        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            velocity = self.momentum * state[0] + gradient
            return value - settings[0] * settings[1] * velocity, (velocity,)

    class Inside(training.Optimizer):
        eps: float

        @property
        def factor(self) -> Any:
            return next(self.eps for _ in range(1))

        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            return value - self.factor * gradient, state

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer = Reading(1.0)
        optimizer.momentum, optimizer.beta_1 = 0.5, 2.0
        Inside(1.0).eps = 0.5
    w = gt.Variable(0.0)
    for _ in range(2):
        optimizer.apply_gradients([(gt.constant(1.0), w)])
    assert w.item() == -5.0
    with pytest.warns(UserWarning, match="Did you mean learning_rate"):
        Reading(1.0).lr = 0.5


FACTOR = [1.0]


class Grouped(training.Optimizer):
    """Reads a dictionary, as PyTorch's optimizers do."""

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self.defaults = {"factor": 1.0, "clip": False}

    def change(self) -> None:
        self.defaults.update(factor=3.0, clip=True)

    @by_blocks
    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        if self.defaults["clip"]:  # more operations than before
            gradient = gt.minimum(gradient * 2.0, 3.0) * 0.5
        return value - settings[0] * self.defaults["factor"] * gradient, state


class OfGlobal(training.SGD):
    def change(self) -> None:
        FACTOR[0] = 3.0

    @by_blocks
    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        return super().update(value, gradient * FACTOR[0], state, settings)


class OfProperty(training.SGD):
    def __init__(self, rate: float) -> None:
        super().__init__(rate, momentum=0.5)

    @property
    def momentum(self) -> float:
        return self.held[0]

    @momentum.setter
    def momentum(self, value: float) -> None:
        self.held = [value]

    def change(self) -> None:
        self.held[0] = 0.1


@pytest.mark.parametrize("kind", [Grouped, OfGlobal, OfProperty])
def test_what_a_marked_formula_reads_may_change(kind: Any) -> None:
    found = []
    for size in (3, 60_000):  # in one block, and in several
        FACTOR[0] = 1.0
        optimizer, variable = kind(0.1), gt.Variable(np.ones(size))
        for step in range(4):
            if step == 2:
                optimizer.change()
            optimizer.apply_gradients([(gt.constant(np.ones(size) + step), variable)])
        assert (variable.numpy() == variable.numpy()[0]).all()
        found.append(variable.numpy()[0])
    assert found[0] == found[1]


STATED: list[dict[str, Any]] = [
    {"gradient_accumulation_steps": 2},
    {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2},
    {"weight_decay": 0.1},
    {"clipnorm": 0.5},
]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("stated", STATED)
def test_options_that_a_class_states_are_those_of_its_constructor(
    stated: dict[str, Any], traced: bool
) -> None:
    found = []
    for kind, options in ((type("Stated", (Sign,), stated), {}), (Sign, stated)):
        w, optimizer = gt.Variable([1.0, -2.0]), kind(0.1, **options)

        def step(w: Any = w, optimizer: Any = optimizer) -> None:
            optimizer.apply_gradients([(w * 2.0, w)])

        run = gt.function(step) if traced else step
        for _ in range(4):
            run()
        found.append([v.numpy().tolist() for v in (w, *optimizer.variables)])
    assert found[0] == found[1]


def test_settings_that_are_python_numbers_are_numbers_in_a_trace_too() -> None:
    class Shared(training.Optimizer):
        def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
            return rate, 1.0 / 3.0

        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            return value - settings[0] * settings[1] * gradient, state

    for dtype in ("float32", "float64"):
        found = []
        for wrap in (lambda f: f, gt.function):
            w, optimizer = gt.Variable(1.0, dtype=dtype), Shared(0.3)
            run = wrap(lambda w=w, o=optimizer: o.apply_gradients([(gt.ones_like(w.value), w)]))
            run()
            found.append(w.item())
        assert found[0] == pytest.approx(found[1], rel=1e-7 if dtype == "float32" else 1e-15)


class Normed(training.Optimizer):
    @by_blocks
    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        return value - settings[0] * gradient / gt.sqrt(gt.sum(gradient * gradient)), state


def test_a_formula_with_a_norm_is_not_elementwise_whatever_its_mark_says() -> None:
    first, second, optimizer = gt.Variable([1.0, 2.0]), gt.Variable(3.0), Normed(0.1)
    with pytest.raises(ValueError, match=r"marked with by_blocks.*the other variables.*Remove"):
        optimizer.apply_gradients([(gt.constant([3.0, 4.0]), first), (gt.constant(1.0), second)])
    assert first.tolist() == [1.0, 2.0]


def test_a_formula_with_random_numbers_may_be_elementwise() -> None:
    class Langevin(training.Optimizer):
        @by_blocks
        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            return value - settings[0] * gradient + 0.1 * gt.random.normal(value.shape), state

    first, second, optimizer = gt.Variable([1.0, 2.0]), gt.Variable(3.0), Langevin(0.1)
    optimizer.apply_gradients([(gt.constant([3.0, 4.0]), first), (gt.constant(1.0), second)])
    assert first.tolist() != [1.0, 2.0]


@pytest.mark.parametrize("size", [3, 300_000])
def test_a_marked_formula_may_ask_for_the_shape(size: int) -> None:
    class Noiseless(training.Optimizer):
        @by_blocks
        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            return value - settings[0] * gradient + np.zeros(value.shape, value.dtype), state

    first, second, optimizer = gt.Variable(np.ones(size)), gt.Variable(3.0), Noiseless(0.5)
    optimizer.apply_gradients([(gt.ones(size), first), (gt.constant(1.0), second)])
    assert [set(first.numpy()), second.item()] == [{0.5}, 2.5]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elementwise_formulas_of_gradtapes_functions_keep_their_mark(dtype: str) -> None:
    class Soft(training.Optimizer):
        slots = ("means",)

        @by_blocks
        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            mean = 0.9 * state[0] + 0.1 * gt.tanh(gradient)
            return value - settings[0] * mean / (gt.exp(-gt.abs(mean)) + 1e-7), (mean,)

    rng = np.random.default_rng(0)
    values = [rng.normal(size=n).astype(dtype) for n in (7, 1, 33)]
    optimizer, variables = Soft(0.3, weight_decay=0.1), [gt.Variable(x) for x in values]
    for _ in range(3):
        optimizer.apply_gradients([(v * 5.0, v) for v in variables])
    assert all(np.isfinite(v.numpy()).all() for v in variables)


class Stated(gt.training.Optimizer):
    clipnorm = 1.0
    use_ema = True

    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        return value - settings[0] * gradient, state


class WithoutOptions(Stated):
    def __init__(self, learning_rate: float = 0.5) -> None:
        super().__init__(learning_rate)


def test_what_a_class_states_is_its_default(tmp_path: Path) -> None:
    for given, clipnorm, use_ema in [
        ({}, 1.0, True),
        ({"clipnorm": 1.0}, 1.0, True),
        ({"clipnorm": None, "use_ema": False}, None, False),
        ({"clipnorm": None, "clipvalue": 2.0}, None, True),
    ]:
        holder = gt.Module()
        holder.w, holder.optimizer = gt.Variable([3.0, 4.0]), Stated(0.5, **given)  # type: ignore[arg-type]
        made = Stated.from_config(holder.optimizer.get_config())
        gt.save(holder, tmp_path / "holder.h5")
        for x in (holder.optimizer, made, gt.load(tmp_path / "holder.h5").optimizer):
            assert (x.clipnorm, x.use_ema) == (clipnorm, use_ema)
            assert ("weight_averages" in x.slots) is use_ema
        made.apply_gradients([(gt.constant([3.0, 4.0]), holder.w)])
        step = 0.5 if clipnorm is None else 0.1
        if "clipvalue" in given:
            continue
        np.testing.assert_allclose(holder.w, np.array([3.0, 4.0]) * (1 - step), rtol=1e-6)
    assert WithoutOptions.from_config(WithoutOptions().get_config()).clipnorm == 1.0


class StatedForAverages(Stated):
    use_ema = False
    ema_momentum = 0.5


def test_how_a_class_averages_is_stated_before_an_object_asks_for_averages(tmp_path: Path) -> None:
    for use_ema in (False, True):
        holder = gt.Module()
        holder.optimizer = StatedForAverages(1.0, use_ema=use_ema)
        gt.save(holder, tmp_path / "holder.h5")
        made = StatedForAverages.from_config(holder.optimizer.get_config())
        for optimizer in (holder.optimizer, made, gt.load(tmp_path / "holder.h5").optimizer):
            assert (optimizer.use_ema, optimizer.ema_momentum) == (use_ema, 0.5)
    with pytest.raises(ValueError, match="ema_momentum needs averages of weights: set use_ema"):
        StatedForAverages(1.0, ema_momentum=0.8)


def test_an_option_that_is_no_number_is_named() -> None:
    with pytest.raises(TypeError, match="Stated: ema_momentum must be a number, got None"):
        Stated(0.5, ema_momentum=None)  # type: ignore[arg-type]


def test_a_constructor_that_leaves_out_the_base_class_is_told() -> None:
    class Bare(Sign):
        def __init__(self, rate: float) -> None:
            self.rate = rate

    model = gt.layers.Sequential([gt.layers.Dense(1)])
    data = np.ones((4, 2)), np.ones((4, 1))
    with pytest.raises(TypeError, match=r"Bare: let its constructor call super\(\).__init__\(lea"):
        training.fit(model, data, optimizer=Bare(0.1), loss="mse", verbose=0)


def test_dtypes_of_other_libraries_are_not_compared_with_those_of_numpy() -> None:
    strict = pytest.importorskip("array_api_strict", reason="pip install array-api-strict")
    from gradtape.training.optimizers.options import above_zero

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epsilon in (0.0, 3.5e-8):  # one is not in a cache yet
            of_strict = above_zero(epsilon, strict.float32)
            assert of_strict == above_zero(epsilon, np.dtype("float32"))
