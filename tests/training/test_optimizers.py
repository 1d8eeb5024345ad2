"""Optimizers against their formulas in plain NumPy, eagerly and traced; and their errors."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import SGD, Adagrad, Adam, RMSprop

RNG = np.random.default_rng(2)
SHAPES = [(3, 4), (), (5,), (2, 1, 2)]


def sgd(rate: float, momentum: float, nesterov: bool) -> Callable[[Any, Any], Any]:
    velocity: dict[int, Any] = {}

    def step(values: list[Any], grads: list[Any]) -> list[Any]:
        new = []
        for i, (w, g) in enumerate(zip(values, grads, strict=True)):
            velocity[i] = momentum * velocity.get(i, 0.0) - rate * g
            change = momentum * velocity[i] - rate * g if nesterov else velocity[i]
            new.append(w + change)
        return new

    return step


def adam(rate: float, beta_1: float, beta_2: float, epsilon: float) -> Callable[[Any, Any], Any]:
    m: dict[int, Any] = {}
    v: dict[int, Any] = {}
    count = 0

    def step(values: list[Any], grads: list[Any]) -> list[Any]:
        nonlocal count
        count += 1
        new = []
        for i, (w, g) in enumerate(zip(values, grads, strict=True)):
            m[i] = beta_1 * m.get(i, 0.0) + (1 - beta_1) * g
            v[i] = beta_2 * v.get(i, 0.0) + (1 - beta_2) * g * g
            corrected = rate * np.sqrt(1 - beta_2**count) / (1 - beta_1**count)
            new.append(w - corrected * m[i] / (np.sqrt(v[i]) + epsilon))
        return new

    return step


def rmsprop(
    rate: float, rho: float, momentum: float, epsilon: float, centered: bool
) -> Callable[[Any, Any], Any]:
    v: dict[int, Any] = {}
    a: dict[int, Any] = {}
    u: dict[int, Any] = {}

    def step(values: list[Any], grads: list[Any]) -> list[Any]:
        new = []
        for i, (w, g) in enumerate(zip(values, grads, strict=True)):
            v[i] = rho * v.get(i, 0.0) + (1 - rho) * g * g
            a[i] = rho * a.get(i, 0.0) + (1 - rho) * g
            spread = v[i] - a[i] ** 2 if centered else v[i]
            u[i] = momentum * u.get(i, 0.0) + rate * g / np.sqrt(spread + epsilon)
            new.append(w - u[i])
        return new

    return step


def adagrad(rate: float, start: float, epsilon: float) -> Callable[[Any, Any], Any]:
    s: dict[int, Any] = {}

    def step(values: list[Any], grads: list[Any]) -> list[Any]:
        new = []
        for i, (w, g) in enumerate(zip(values, grads, strict=True)):
            s[i] = s.get(i, start) + g * g
            new.append(w - rate * g / np.sqrt(s[i] + epsilon))
        return new

    return step


CASES = [
    pytest.param(lambda: SGD(0.1), lambda: sgd(0.1, 0.0, False), id="sgd"),
    pytest.param(lambda: SGD(0.1, 0.9), lambda: sgd(0.1, 0.9, False), id="momentum"),
    pytest.param(lambda: SGD(0.1, 0.9, True), lambda: sgd(0.1, 0.9, True), id="nesterov"),
    pytest.param(lambda: Adam(), lambda: adam(0.001, 0.9, 0.999, 1e-7), id="adam"),
    pytest.param(
        lambda: Adam(0.05, 0.8, 0.9, 1e-3), lambda: adam(0.05, 0.8, 0.9, 1e-3), id="adam tuned"
    ),
    pytest.param(lambda: RMSprop(), lambda: rmsprop(0.001, 0.9, 0.0, 1e-7, False), id="rmsprop"),
    pytest.param(
        lambda: RMSprop(0.1, 0.8, 0.5, 1e-3, True),
        lambda: rmsprop(0.1, 0.8, 0.5, 1e-3, True),
        id="rmsprop tuned",
    ),
    pytest.param(lambda: Adagrad(), lambda: adagrad(0.001, 0.1, 1e-7), id="adagrad"),
    pytest.param(
        lambda: Adagrad(0.5, 0.0, 1e-3), lambda: adagrad(0.5, 0.0, 1e-3), id="adagrad tuned"
    ),
]


def variables(dtype: str = "float64") -> list[gt.Variable]:
    rng = np.random.default_rng(7)
    return [gt.Variable(rng.normal(size=shape).astype(dtype)) for shape in SHAPES]


def gradients(seed: int, dtype: str = "float64") -> list[Any]:
    rng = np.random.default_rng(seed)
    return [gt.constant(rng.normal(size=shape).astype(dtype)) for shape in SHAPES]


@pytest.mark.parametrize(("make", "formula"), CASES)
def test_steps_follow_the_formula(make: Any, formula: Any) -> None:
    optimizer, step, held = make(), formula(), variables()
    values = [v.numpy().copy() for v in held]
    for i in range(6):
        grads = gradients(i)
        optimizer.apply_gradients(zip(grads, held, strict=True))
        values = step(values, [g.numpy() for g in grads])
        for variable, value in zip(held, values, strict=True):
            np.testing.assert_allclose(variable.numpy(), value, rtol=1e-12, atol=1e-14)
            assert variable.shape == np.shape(value)
    assert optimizer.iterations.item() == 6


@pytest.mark.parametrize(("make", "formula"), CASES)
def test_traced_steps_are_the_eager_ones(make: Any, formula: Any) -> None:
    one, two = make(), make()
    mine, theirs = variables(), variables()

    @gt.function
    def step(grads: list[Any]) -> None:
        one.apply_gradients(zip(grads, mine, strict=True))

    for i in range(4):
        step(gradients(i))
        two.apply_gradients(zip(gradients(i), theirs, strict=True))
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    for a, b in zip(one.variables, two.variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    # and one may follow the other
    one.apply_gradients(zip(gradients(9), mine, strict=True))
    two.apply_gradients(zip(gradients(9), theirs, strict=True))
    np.testing.assert_allclose(mine[0].numpy(), theirs[0].numpy(), rtol=1e-12)


def test_a_traced_training_step_is_the_eager_one() -> None:
    x, labels = RNG.normal(size=(16, 5)).astype("float32"), RNG.integers(0, 3, 16)

    def make() -> Any:
        gt.random.set_seed(0)
        # no bias before the normalisation: its gradient is 0, and Adam would amplify the noise
        first = gt.layers.Dense(8, use_bias=False)
        layers = [first, gt.layers.BatchNorm(), gt.tanh, gt.layers.Dense(3)]
        model = gt.layers.Sequential(layers)
        model(x)
        return model, Adam(0.01)

    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        with gt.GradientTape() as tape:
            logits = model(x, training=True)
            loss = gt.mean(gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    eager, optimizer = make()
    traced, its_optimizer = make()
    compiled = gt.function(lambda x, y: step(traced, its_optimizer, x, y))
    for _ in range(5):
        a, b = step(eager, optimizer, gt.constant(x), labels), compiled(x, labels)
        assert a.item() == pytest.approx(b.item(), rel=1e-5)
    for v, w in zip(eager.variables, traced.variables, strict=True):
        np.testing.assert_allclose(v.numpy(), w.numpy(), rtol=1e-4, atol=1e-6)


def test_variables_of_several_dtypes_in_one_step() -> None:
    held = [gt.Variable(np.ones(2, "float32")), gt.Variable(np.ones(3, "float64"))]
    optimizer = SGD(0.5)
    grads = [np.ones(2), gt.constant(np.ones(3, "float32"))]
    optimizer.apply_gradients(zip(grads, held, strict=True))
    assert [v.dtype.name for v in held] == ["float32", "float64"]
    assert [v.numpy().tolist() for v in held] == [[0.5, 0.5], [0.5, 0.5, 0.5]]


def test_values_read_before_a_step_stay_what_they_were() -> None:
    weight = gt.Variable([1.0, 2.0])
    optimizer = Adam(0.1)
    optimizer.apply_gradients([(gt.constant([1.0, 1.0]), weight)])
    before = weight.value
    kept = before.numpy().copy()
    moments = optimizer.first_moments[0].value
    kept_moments = moments.numpy().copy()
    for _ in range(3):
        optimizer.apply_gradients([(gt.constant([1.0, -1.0]), weight)])
    np.testing.assert_array_equal(before.numpy(), kept)
    np.testing.assert_array_equal(moments.numpy(), kept_moments)


def test_gradients_use_the_value_read_though_a_step_came_between() -> None:
    v = gt.Variable(2.0)
    with gt.GradientTape() as tape:
        y = v**2
        SGD(1.0).apply_gradients([(gt.constant(-8.0), v)])
        z = v**3
    assert v.item() == 10.0
    assert tape.gradient([y, z], v).item() == 304.0


def test_a_variable_assigned_between_steps_is_not_lost() -> None:
    held = variables()
    optimizer = SGD(1.0, momentum=0.5)
    zeros = [gt.constant(np.zeros(shape)) for shape in SHAPES]
    optimizer.apply_gradients(zip(zeros, held, strict=True))
    held[2].assign(np.arange(5.0))
    optimizer.velocities[0].assign(np.ones((3, 4)))
    first = held[0].numpy().copy()
    optimizer.apply_gradients(zip(zeros, held, strict=True))
    np.testing.assert_array_equal(held[2].numpy(), np.arange(5.0))
    np.testing.assert_allclose(held[0].numpy(), first + 0.5)


def test_different_sets_of_variables_take_turns() -> None:
    a, b = gt.Variable([1.0, 1.0]), gt.Variable(5.0)
    optimizer = SGD(1.0, momentum=0.5)
    optimizer.apply_gradients([(gt.constant([1.0, 0.0]), a)])
    optimizer.apply_gradients([(gt.constant(1.0), b), (gt.constant([0.0, 0.0]), a)])
    optimizer.apply_gradients([(gt.constant(0.0), b)])
    assert a.numpy().tolist() == [-0.5, 1.0]
    assert b.item() == 3.5
    assert [v.shape for v in optimizer.velocities] == [(2,), ()]


# -- learning rates --------------------------------------------------------------------------------


def test_the_learning_rate_can_be_set_and_is_exact() -> None:
    optimizer = SGD(0.1)
    assert optimizer.learning_rate.item() == 0.1
    optimizer.learning_rate = 0.25
    w = gt.Variable(1.0)
    optimizer.apply_gradients([(gt.constant(1.0), w)])
    assert w.item() == 0.75
    with pytest.raises(ValueError, match="learning_rate must not be negative, got -1"):
        optimizer.learning_rate = -1


def test_a_variable_as_learning_rate_acts_in_a_trace() -> None:
    rate, w = gt.Variable(0.5, trainable=False), gt.Variable(1.0)
    optimizer = SGD(rate)
    step = gt.function(lambda g: optimizer.apply_gradients([(g, w)]))
    step(gt.constant(1.0))
    rate.assign(0.25)
    step(gt.constant(1.0))
    assert w.item() == 0.25


def test_a_schedule_is_asked_at_each_step_eagerly_and_traced() -> None:
    def schedule(step: Any) -> Any:
        return 0.5 / (step + 1)

    for traced in (False, True):
        w = gt.Variable(1.0)
        optimizer = SGD(schedule)

        def step(g: Any, optimizer: SGD = optimizer, w: gt.Variable = w) -> None:
            optimizer.apply_gradients([(g, w)])

        run = gt.function(step) if traced else step
        for _ in range(2):
            run(gt.constant(1.0))
        assert w.item() == 0.25


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: SGD(0.1, 0.9), Adam])
def test_nothing_changes_when_a_step_is_refused(make: Any) -> None:
    kernel, bias = gt.Variable(np.ones((2, 3)), name="kernel"), gt.Variable(np.ones(3), name="bias")
    optimizer = make()
    good = gt.constant(np.ones((2, 3)))
    for bad, message in (
        ([(good, kernel), (None, bias)], r"'bias' \(shape \(3,\)\) is None.*tape.explain"),
        ([(good, kernel), (good, bias)], r"'bias' has shape \(2, 3\), but the variable has shape"),
        ([(good, kernel), (good, kernel)], r"SGD|Adam: variable 'kernel' appears twice"),
    ):
        with pytest.raises(ValueError, match=message):
            optimizer.apply_gradients(bad)
    with pytest.raises(TypeError, match=r"expected pairs.*got Tensor"):
        optimizer.apply_gradients([(good, good)])
    assert kernel.numpy().tolist() == np.ones((2, 3)).tolist()
    assert optimizer.iterations.item() == 0
    assert not getattr(optimizer, optimizer.slots[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD(-0.1), "learning_rate must not be negative"),
        (lambda: SGD(float("nan")), "learning_rate must not be negative"),
        (lambda: SGD(momentum=1.5), r"momentum must be in \[0, 1\], got 1.5"),
        (lambda: Adam(beta_1=1.0), r"beta_1 must be in \[0, 1\), got 1.0"),
        (lambda: Adam(beta_2=-0.1), r"beta_2 must be in \[0, 1\)"),
        (lambda: RMSprop(rho=1.0), r"RMSprop: rho must be in \[0, 1\), got 1.0"),
        (lambda: RMSprop(momentum=-1), r"RMSprop: momentum must be in \[0, 1\), got -1"),
        (
            lambda: Adagrad(initial_accumulator_value=-0.5),
            "initial_accumulator_value must not be negative, got -0.5",
        ),
        (lambda: SGD(clipnorm=0.0), r"SGD: set at most one of .* got {'clipnorm': 0.0}"),
        (lambda: Adam(clipnorm=1, clipvalue=2), "Adam: set at most one of clipnorm, clipvalue"),
    ],
)
def test_arguments_out_of_range(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_nothing_to_do_is_a_step_too() -> None:
    optimizer = Adam()
    optimizer.apply_gradients([])
    assert optimizer.iterations.item() == 1


# -- state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: SGD(0.1, 0.9, True),
        lambda: SGD(0.1),
        Adam,
        lambda: RMSprop(0.1, 0.8, 0.5, centered=True),
        lambda: Adagrad(0.2, 0.3),
        lambda: SGD(0.1, clipnorm=0.5),
    ],
)
def test_restored_from_config_and_variables_it_goes_on_the_same(make: Any) -> None:
    held, twins = variables(), variables()
    optimizer = make()
    for i in range(3):
        optimizer.apply_gradients(zip(gradients(i), held, strict=True))
    for a, b in zip(held, twins, strict=True):
        b.assign(a)
    twin = type(optimizer).from_config(json.loads(json.dumps(optimizer.get_config())))

    def copied(variable: gt.Variable) -> gt.Variable:
        return gt.Variable(variable.numpy(), trainable=False, dtype=variable.dtype)

    twin.iterations = copied(optimizer.iterations)
    twin.learning_rate = copied(optimizer.learning_rate)
    for slot in optimizer.slots:
        setattr(twin, slot, [copied(v) for v in getattr(optimizer, slot)])
    assert list(twin.named_variables) == list(optimizer.named_variables)
    for i in range(3, 5):
        optimizer.apply_gradients(zip(gradients(i), held, strict=True))
        twin.apply_gradients(zip(gradients(i), twins, strict=True))
    for a, b in zip(held, twins, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_restored_slots_that_do_not_fit_are_refused() -> None:
    optimizer = Adam()
    optimizer.first_moments = [gt.Variable(np.zeros(3), trainable=False)]
    optimizer.second_moments = [gt.Variable(np.zeros(3), trainable=False)]
    w = gt.Variable(np.zeros((2, 2)), name="kernel")
    with pytest.raises(
        ValueError, match=r"first_moments\[0\] has shape \(3,\).*'kernel' has shape"
    ):
        optimizer.apply_gradients([(gt.constant(np.zeros((2, 2))), w)])


def test_slots_are_tracked_and_trained_variables_are_not() -> None:
    optimizer, w = Adam(), gt.Variable([1.0, 2.0], name="w")
    optimizer.apply_gradients([(gt.constant([1.0, 1.0]), w)])
    assert sorted(optimizer.named_variables) == [
        "first_moments/0",
        "iterations",
        "learning_rate",
        "second_moments/0",
    ]
    assert optimizer.trainable_variables == ()
    assert optimizer.first_moments[0].name == "w_first_moments"


def test_a_copy_of_model_and_optimizer_trains_on_its_own() -> None:
    held, optimizer = variables(), SGD(0.1, 0.9)
    optimizer.apply_gradients(zip(gradients(0), held, strict=True))
    theirs, twin = copy.deepcopy((held, optimizer))
    optimizer.apply_gradients(zip(gradients(1), held, strict=True))
    assert (theirs[0].numpy() != held[0].numpy()).all()
    twin.apply_gradients(zip(gradients(1), theirs, strict=True))
    np.testing.assert_array_equal(theirs[0].numpy(), held[0].numpy())
    assert len(twin.velocities) == len(SHAPES)


@pytest.mark.parametrize(
    "make", [lambda: SGD(0.1), lambda: SGD(0.05, 0.5), lambda: Adam(0.1), lambda: Adagrad(0.8)]
)
def test_complex_variables_descend(make: Any) -> None:
    z, goal, optimizer = gt.Variable([1 + 1j, -2j]), np.array([0.5 - 1j, 2.0]), make()
    for _ in range(300):
        with gt.GradientTape() as tape:
            loss = gt.sum(gt.abs(z - goal) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, z), z)])
    np.testing.assert_allclose(z.numpy(), goal, atol=0.02)


# -- clipping and losses ---------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("clipping", "expected"),
    [
        ({}, [[-3.0, -4.0], [-12.0]]),
        ({"clipnorm": 1.0}, [[-0.6, -0.8], [-1.0]]),
        ({"clipvalue": 3.5}, [[-3.0, -3.5], [-3.5]]),
        ({"global_clipnorm": 1.3}, [[-0.3, -0.4], [-1.2]]),
        ({"clipnorm": None, "global_clipnorm": 100.0}, [[-3.0, -4.0], [-12.0]]),
    ],
)
def test_gradients_are_clipped(clipping: Any, expected: Any, traced: bool) -> None:
    held = [gt.Variable(np.zeros(2)), gt.Variable(np.zeros(1))]
    optimizer = SGD(1.0, **clipping)

    def step(a: Any, b: Any) -> None:
        optimizer.apply_gradients(zip([a, b], held, strict=True))

    (gt.function(step) if traced else step)(gt.constant([3.0, 4.0]), gt.constant([12.0]))
    for variable, value in zip(held, expected, strict=True):
        np.testing.assert_allclose(variable.numpy(), value, rtol=1e-6)


def test_clipping_can_be_changed_and_is_in_the_configuration() -> None:
    optimizer, w = SGD(1.0), gt.Variable([0.0])
    assert "clipvalue" not in optimizer.get_config()
    optimizer.clipvalue = 0.5
    optimizer.apply_gradients([(gt.constant([9.0]), w)])
    assert w.numpy().tolist() == [-0.5]
    assert optimizer.get_config()["clipvalue"] == 0.5
    with pytest.raises(TypeError, match="clipping"):
        SGD(1.0, clipping=3.0)  # type: ignore[call-arg]


def test_a_global_norm_skips_what_has_no_gradient() -> None:
    assert gt.training.global_norm([]).item() == 0.0
    assert gt.training.global_norm([None]).item() == 0.0
    parts, norm = gt.training.clip_by_global_norm([np.array([3.0, 4.0]), None], 10.0)
    assert norm.item() == 5.0
    assert parts[0].tolist() == [3.0, 4.0]
    assert parts[1] is None
    parts, _ = gt.training.clip_by_global_norm([np.array([3.0, 4.0])], 1.0, norm=10.0)
    np.testing.assert_allclose(parts[0].numpy(), [0.3, 0.4])


def test_a_loss_is_minimised_in_one_step() -> None:
    w, optimizer = gt.Variable(2.0), SGD(0.25)
    optimizer.minimize(lambda: w * w, lambda: [w])
    assert w.item() == 1.0
    with gt.GradientTape() as tape:
        loss = w * w
    optimizer.minimize(loss, [w], tape)
    assert w.item() == 0.5
    with pytest.raises(ValueError, match="needs the tape that recorded it"):
        optimizer.minimize(loss, [w])


def test_an_optimizer_is_found_by_its_name() -> None:
    for name, kind in {"sgd": SGD, "Adam": Adam, "RMSprop": RMSprop, "adagrad": Adagrad}.items():
        assert type(gt.training.optimizers.get(name)) is kind
    optimizer = Adam()
    assert gt.training.optimizers.get(optimizer) is optimizer
    with pytest.raises(ValueError, match="Known: adadelta, adagrad, adam"):
        gt.training.optimizers.get("adamax2")
    with pytest.raises(TypeError, match="expected an optimizer or the name of one, got 3"):
        gt.training.optimizers.get(3)


def test_an_optimizer_of_ones_own_needs_its_update_alone() -> None:
    class Sign(gt.training.Optimizer):
        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            (rate,) = settings
            return value - gradient / abs(gradient) * rate, ()

    w = gt.Variable([1.0, 1.0])
    Sign(0.5).apply_gradients([(gt.constant([-3.0, 0.1]), w)])
    assert w.numpy().tolist() == [1.5, 0.5]


@pytest.mark.parametrize("optimizer", ["Adam", "SGD"])
def test_float16_variables_get_one_warning_that_names_the_remedy(optimizer: str) -> None:
    kinds = {"w": "float16", "b": "float16", "v": "float32"}
    variables = [gt.Variable(np.ones(3, kind), name=name) for name, kind in kinds.items()]
    trainer = getattr(gt.training, optimizer)(0.01)
    gradients = [np.full(3, 1e-3, v.dtype.name) for v in variables]
    with pytest.warns(RuntimeWarning, match="variable 'w' is float16.*mixed_float16") as found:
        trainer.apply_gradients(list(zip(gradients, variables, strict=True)))
    assert len(found) == 1
    with warnings.catch_warnings(action="error"):
        trainer.apply_gradients(list(zip(gradients, variables, strict=True)))
