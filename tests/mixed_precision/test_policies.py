"""Layers compute in the dtype of their policy, and keep their variables in float32."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape.layers import Activation, BatchNorm, Dense, Dropout, Flatten, Layer, Sequential

PLUGIN = pretend_gpu.Plugin("distant")
BACKENDS = ["numpy", "jax", "distant"]
#: By policy: the relative distance of two numbers that it tells apart.
EPS = {"mixed_float16": 2.0**-10, "mixed_bfloat16": 2.0**-7}
POLICIES = list(EPS)

X = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    gt.register_plugin(PLUGIN, "distant")
    yield
    gt.mixed_precision.set_policy("float32")
    gt.unregister_plugin("distant")


def host(x: Any) -> Any:
    return gt.as_tensor(x).to("numpy").numpy()


def bfloat16(x: Any) -> Any:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with np.errstate(invalid="ignore"):
        return np.asarray(x, "float32").astype(ml_dtypes.bfloat16).astype("float32")


def model(policy: str) -> Any:
    gt.random.set_seed(3)
    with gt.mixed_precision.policy(policy):
        made = Sequential(
            [Dense(8, activation="tanh"), BatchNorm(), Dropout(0.1, seed=1), Dense(3)]
        )
    made(X[:1])
    return made


# -- which policy --------------------------------------------------------------------------------


def test_a_policy_has_two_dtypes() -> None:
    for name, dtypes in {
        "mixed_float16": ("float16", "float32"),
        "mixed_bfloat16": ("bfloat16", "float32"),
        "float32": ("float32", "float32"),
        "float64": ("float64", "float64"),
    }.items():
        policy = gt.mixed_precision.Policy(name)
        assert (policy.compute_dtype, policy.variable_dtype) == dtypes
        assert pickle.loads(pickle.dumps(policy)) == policy == copy.deepcopy(policy)


@pytest.mark.parametrize(
    ("name", "said"),
    [("mixed", "mixed_float16"), ("bfloat16", "mixed_bfloat16"), ("int32", "floating dtype")],
)
def test_unknown_policies_are_refused_with_what_there_is(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        gt.mixed_precision.Policy(name)


def test_float64_is_no_policy_for_all_layers() -> None:
    with pytest.raises(ValueError, match="set_default_dtype"):
        gt.mixed_precision.set_policy("float64")


@pytest.mark.parametrize(
    "use", [lambda: gt.cast(X, "bfloat16"), lambda: gt.constant(X, "bfloat16")]
)
def test_bfloat16_tensors_are_refused_with_what_to_use(use: Any) -> None:
    with pytest.raises(TypeError, match="mixed_bfloat16"):
        use()


def test_layers_keep_the_policy_that_they_were_made_with() -> None:
    gt.mixed_precision.set_policy("mixed_bfloat16")
    first = Dense(2)
    with gt.mixed_precision.policy("mixed_float16"):
        second, third = Dense(2), Dense(2, dtype="float32")
        threads: list[str] = []
        thread = threading.Thread(target=lambda: threads.append(Dense(2).compute_dtype))
        thread.start()
        thread.join()
    gt.mixed_precision.set_policy("float32")
    layers = first, second, third, Dense(2), Dense(2, dtype=second.policy)
    names = ["bfloat16", "float16", "float32", "float32", "float16"]
    assert [x.compute_dtype for x in layers] == names
    assert threads == ["bfloat16"]  # what surrounds a thread is not its own, as with backends


@pytest.mark.parametrize("dtype", ["float16", "float64", None])
def test_a_plain_dtype_is_what_it_was(dtype: Any) -> None:
    x = X.astype(dtype or "float64")
    layer = Dense(2, dtype=dtype)
    assert layer(x).dtype == x.dtype == layer.kernel.dtype
    assert layer.get_config()["dtype"] == dtype


# -- what they compute ---------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_variables_are_float32_and_products_low_on_every_backend(policy: str, backend: str) -> None:
    with gt.backend(backend), gt.mixed_precision.policy(policy):
        layer = Dense(3, bias_initializer="ones")
        y = layer(gt.constant(X))
    low = bfloat16 if policy == "mixed_bfloat16" else lambda x: np.asarray(x, "float16")
    assert {v.dtype.name for v in layer.variables} == {"float32"}
    assert y.dtype.name == ("float16" if policy == "mixed_float16" else "float32")
    product = low(X).astype("float64") @ low(host(layer.kernel.value)).astype("float64")
    np.testing.assert_allclose(host(y), product + 1, rtol=EPS[policy], atol=EPS[policy])
    if policy == "mixed_bfloat16":  # products of rounded numbers, summed in float32
        np.testing.assert_allclose(host(y), product + 1, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rounding_to_bfloat16_is_that_of_ml_dtypes(backend: str) -> None:
    bits = np.random.default_rng(1).integers(0, 2**32, 4000, dtype=np.uint32)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        3.4e38,
        -3.4e38,
        1e-45,
        1e-40,
        1.00390625,
        1.01171875,
    ]
    x = np.concatenate([bits.view(np.float32), np.array(special, "float32")])
    if backend == "jax":  # which takes numbers below the normal ones for 0
        x = x[(np.abs(x) >= np.finfo("float32").tiny) | (x == 0) | np.isnan(x)]
    with gt.backend(backend):
        found = host(gt.registry().ops["round_to_bfloat16"](gt.constant(x)))
    want = bfloat16(x)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(want))


def test_layers_that_need_float32_compute_in_it() -> None:
    x = gt.constant(np.linspace(250.0, 300.0, 64, dtype="float32")[:, None])
    with gt.mixed_precision.policy("mixed_float16"):
        norm, soft = BatchNorm(), Activation("softmax", dtype="float32")
    y = norm(x, training=True)
    assert y.dtype.name == "float16"
    assert norm.moving_variance.dtype.name == "float32"
    np.testing.assert_allclose(host(y).std(), 1.0, rtol=1e-2)  # squares overflow in float16
    assert soft(gt.ones((2, 3), "float16")).dtype.name == "float32"


def test_a_small_rate_of_dropout_is_kept_in_float16() -> None:
    drop = Dropout(1e-4, seed=0, dtype="mixed_float16")
    kept = host(drop(gt.ones((400_000,)), training=True))
    assert 10 < (kept == 0).sum() < 100


def test_integers_and_flags_go_through_as_they_are() -> None:
    class Look(Layer):
        def call(self, x: Any, mask: Any = None) -> Any:
            return x[0], x[1], mask

    look = Look(dtype="mixed_float16")
    number, index, mask = look([gt.ones((2,), "float64"), gt.constant([1, 2])], mask=gt.ones(2) > 0)
    assert [x.dtype.name for x in (number, index, mask)] == ["float16", "int64", "bool"]


def test_integers_meet_weights_in_the_dtype_to_compute_in() -> None:
    assert Dense(2, dtype="mixed_float16")(gt.constant([[1, 2]])).dtype.name == "float16"


class Scaled(Layer):
    """A layer of a user's, that reads variables in every way, and calls another."""

    def __init__(self, inner: Any = None, dtype: Any = None) -> None:
        super().__init__(dtype=dtype)
        self.inner = inner

    def build(self, input_shape: Any) -> None:
        self.scale = [self.add_weight((4,), "ones", "scale")]
        self.count = self.add_weight((), "zeros", "count", trainable=False)

    def call(self, x: Any) -> Any:
        self.count.assign_add(1.0)
        self.seen = [(self.scale[0] * 1).dtype.name, gt.sum(self.scale[0]).dtype.name]
        self.seen += [self.scale[0].value.dtype.name, self.scale[0][0].dtype.name]
        y = x * self.scale[0]
        return y if self.inner is None else self.inner(y)


def test_every_read_of_a_variable_is_cast_and_assignments_are_not() -> None:
    layer = Scaled(dtype="mixed_float16")
    layer(X)
    assert layer.seen == ["float16"] * 4
    assert layer.count.item() == 1.0
    assert layer.count.dtype.name == layer.scale[0].value.dtype.name == "float32"


def test_a_layer_inside_follows_its_own_policy() -> None:
    plain, low = Dense(2, dtype="float32"), Dense(2, dtype="mixed_float16")
    assert Scaled(plain, dtype="mixed_float16")(X).dtype.name == "float32"
    assert Scaled(low)(X).dtype.name == "float16"


def test_a_traced_function_in_a_layer_computes_as_anywhere() -> None:
    w = gt.Variable(np.ones(4, "float32"))
    scale = gt.function(lambda x: x * w)

    class Uses(Layer):
        def call(self, x: Any) -> Any:
            return scale(x)

    for _ in range(2):
        assert Uses(dtype="mixed_float16")(X).dtype.name == "float32"
        assert scale(gt.constant(X)).dtype.name == "float32"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_call_that_is_traced_follows_the_policy(policy: str) -> None:
    class Traced(Dense):
        @gt.function
        def call(self, x: Any) -> Any:
            return super().call(x)

    with gt.mixed_precision.policy(policy):
        layer = Traced(3)
    got = layer(X)
    plain = Dense(3, dtype=policy)
    plain(X)
    plain.set_weights(layer.get_weights())
    assert got.dtype == plain(X).dtype
    np.testing.assert_array_equal(host(got), host(plain(X)))
    inside = gt.function(lambda x: layer(x) + layer(x))(X)
    np.testing.assert_array_equal(host(inside), host(got + got))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("executor", ["plain", "default", "planned", "fused"])
def test_a_compiled_model_gives_what_the_eager_one_does(policy: str, executor: str) -> None:
    net = model(policy)
    with gt.executor(executor):
        compiled = gt.function(lambda x: net(x))
        for _ in range(3):
            got = compiled(gt.constant(X))
    np.testing.assert_allclose(host(got), host(net(X)), rtol=2 * EPS[policy], atol=2 * EPS[policy])
    assert got.dtype == net(X).dtype


# -- gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "distant"])
@pytest.mark.parametrize("policy", POLICIES)
def test_gradients_of_two_orders_are_those_of_float32_within_the_rounding(
    policy: str, backend: str
) -> None:
    def derivatives(of: str) -> list[Any]:
        gt.random.set_seed(3)
        with gt.backend(backend), gt.mixed_precision.policy(of):
            net = Sequential([Dense(8, activation="tanh"), Dense(3)])
            x = gt.constant(X)
            net(x)
            with gt.GradientTape() as outer:
                with gt.GradientTape() as inner:
                    loss = gt.training.mean_squared_error(gt.zeros((6, 3)), net(x))
                    loss = gt.mean(loss)
                first = inner.gradient(loss, list(net.trainable_variables))
                slope = sum(gt.sum(g * g) for g in first)
            return [*first, *outer.gradient(slope, list(net.trainable_variables))]

    for low, exact in zip(derivatives(policy), derivatives("float32"), strict=True):
        assert low.dtype.name == "float32"
        off = np.abs(host(low) - host(exact)).max() / np.abs(host(exact)).max()
        assert off < 16 * EPS[policy]


@pytest.mark.parametrize("policy", POLICIES)
def test_batches_forward_mode_and_recomputing_agree_with_the_tape(policy: str) -> None:
    net = Sequential([Dense(8, activation="tanh", dtype=policy), Dense(1, dtype=policy)])
    net(X)
    x = gt.constant(X)

    def f(row: Any) -> Any:
        return gt.sum(net(row[None]))

    rows = host(gt.vmap(gt.grad(f))(x))
    whole = host(gt.grad(lambda x: gt.sum(net(x)))(x))
    again = host(gt.grad(lambda x: gt.sum(gt.recompute_grad(net)(x)))(x))
    tolerance = {"rtol": 4 * EPS[policy], "atol": 4 * EPS[policy]}
    np.testing.assert_allclose(rows, whole, **tolerance)
    np.testing.assert_allclose(again, whole, **tolerance)
    _, tangent = gt.jvp(lambda x: gt.sum(net(x)), [x], [gt.ones_like(x)])
    np.testing.assert_allclose(host(tangent), whole.sum(), rtol=0.05, atol=0.05)


def test_recomputing_inside_a_layer_reads_variables_as_it_did() -> None:
    seen: list[str] = []

    class Again(Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight((4,), "ones", "w")

        def call(self, x: Any) -> Any:
            def inner(x: Any) -> Any:
                seen.append((x * self.w).dtype.name)
                return x * self.w

            return gt.recompute_grad(inner)(x)

    layer = Again(dtype="mixed_float16")
    with gt.GradientTape() as tape:
        y = gt.sum(layer(X))
    assert tape.gradient(y, layer.w).dtype.name == "float32"
    assert seen == ["float16", "float16"]


def test_custom_gradients_meet_the_dtype_to_compute_in() -> None:
    met: list[str] = []

    @gt.custom_gradient
    def passing(x: Any) -> Any:
        met.append(x.dtype.name)

        def back(g: Any) -> Any:
            met.append(g.dtype.name)
            return g

        return x, back

    layer = Activation(passing, dtype="mixed_float16")
    x = gt.constant(X)
    grad = gt.grad(lambda x: gt.sum(layer(x)))(x)
    assert met == ["float16", "float16"]
    assert grad.dtype.name == "float32"


# -- what sums is float32 ------------------------------------------------------------------------


COUNT = 5000
LINE = np.ones((1, COUNT), "float16")
COLUMNS = np.ones((COUNT, 3), "float16")
SUMS = {
    "sum": lambda line, columns: gt.sum(columns, axis=0),
    "sum of a line": lambda line, columns: gt.sum(line),
    "mean": lambda line, columns: gt.mean(columns, axis=0) * COUNT,
    "matmul": lambda line, columns: line @ columns,
    "matmul's gradient": lambda line, columns: gt.grad(
        lambda x: gt.sum(gt.swapaxes(line, 0, 1) @ x)
    )(columns[:1]),
    "einsum": lambda line, columns: gt.einsum("ij,jk->ik", line, columns),
    "tensordot": lambda line, columns: gt.tensordot(line, columns, 1),
    "vecdot": lambda line, columns: gt.vecdot(line[0], columns[:, 0]),
    "a bias' gradient": lambda line, columns: gt.grad(lambda b: gt.sum(columns + b))(columns[0]),
    "norm": lambda line, columns: gt.linalg.norm(line) ** 2,
    "conv": lambda line, columns: gt.nn.conv1d(line[:, :, None], line[0][:, None, None]),
    "repeat's gradient": lambda line, columns: gt.grad(lambda x: gt.sum(gt.repeat(x, COUNT)))(
        line[0, :1]
    ),
    "softmax": lambda line, columns: COUNT**2 * gt.nn.softmax(line)[0, 0].astype("float32"),
    "logsumexp": lambda line, columns: gt.exp(gt.logsumexp(line.astype("float32") * 0.0)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_float16_are_counted_in_float32(name: str, backend: str) -> None:
    with gt.backend(backend):
        found = SUMS[name](gt.constant(LINE), gt.constant(COLUMNS))
    np.testing.assert_allclose(host(found), COUNT, rtol=2e-3)


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_the_policy_comes_back_from_a_file_and_weights_are_float32(
    policy: str, tmp_path: Path
) -> None:
    net = model(policy)
    net.add(Flatten(dtype="float32"))
    want = net(X)
    gt.save(net, tmp_path / "net.h5")
    other = POLICIES[1 - POLICIES.index(policy)]
    with gt.mixed_precision.policy(other):  # whoever loads it has no say
        again = gt.load(tmp_path / "net.h5")
    assert [x.policy.name for x in again.layers] == [policy] * 4 + ["float32"]
    assert {v.dtype.name for v in again.trainable_variables} == {"float32"}
    np.testing.assert_array_equal(host(again(X)), host(want))
    assert gt.saving.verify(tmp_path / "net.h5").ok
    assert copy.deepcopy(net).layers[0].policy.name == policy
    assert pickle.loads(pickle.dumps(net)).layers[0].policy.name == policy


@pytest.mark.parametrize("policy", POLICIES)
def test_a_file_verifies_on_another_backend_within_the_rounding(
    policy: str, tmp_path: Path
) -> None:
    net = Dense(16, activation="tanh", dtype=policy)
    net(X)
    gt.save(net, tmp_path / "net.h5")
    report = gt.saving.verify(tmp_path / "net.h5", backend="jax")
    assert report.ok, report.table()


def test_a_file_without_a_policy_loads_as_it_was_saved(tmp_path: Path) -> None:
    plain = Sequential([Dense(3), Activation("tanh"), Dropout(0.5), Flatten()])
    plain(X)
    assert all("dtype" not in x.get_config() for x in plain.layers[1:])
    gt.save(plain, tmp_path / "net.h5")
    with gt.mixed_precision.policy("mixed_float16"):
        again = gt.load(tmp_path / "net.h5")
    assert again(X).dtype.name == "float32"
    np.testing.assert_array_equal(host(again(X)), host(plain(X)))
