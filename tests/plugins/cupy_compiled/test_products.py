"""Products of matrices on CuPy: their precision, and what sums are in."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from weakref import ref

import numpy as np
import pytest
from cuda_on_cpu import rounded

import gradtape as gt
from gradtape.core.extend import ops
from gradtape.mixed_precision import matmul_precision, set_matmul_precision
from gradtape.plugins.cupy.compiled import products
from gradtape.plugins.cupy.compiled.products import BFLOAT16, TF32, CublasHandle, NoLibrary

HOW = pytest.mark.parametrize("how", ["eager", "plain", "default", "cuda_graphs"])
VARIABLE = "CUPY_TF32"
#: Numbers with as many digits as TF32 has, for which both precisions give the same.
COARSE = np.random.default_rng(0).integers(-30, 30, (4, 5)).astype("float32")


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what the environment says, before and after."""
    monkeypatch.delenv(VARIABLE, raising=False)
    products.cupy_rounds.cache_clear()
    yield
    set_matmul_precision("default")
    products.cupy_rounds.cache_clear()


def R(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def convolved(x: Any, w: Any) -> Any:
    return gt.nn.conv(x, w, strides=1, padding="valid")


#: Functions of two arrays that are one product, and their arrays.
PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "matrices": (gt.matmul, (4, 6), (6, 5)),
    "transposed": (lambda x, y: gt.swapaxes(x, 0, 1) @ y, (6, 4), (6, 5)),
    "stacks": (gt.matmul, (3, 4, 6), (6, 5)),
    "broadcast": (gt.matmul, (2, 1, 4, 6), (3, 6, 5)),
    "a vector": (gt.matmul, (4, 6), (6,)),
    "a vector before": (gt.matmul, (6,), (2, 6, 5)),
    "tensordot": (lambda x, y: gt.tensordot(x, y, axes=((2, 0), (0, 1))), (3, 4, 6), (6, 3, 5)),
    "einsum": (lambda x, y: gt.einsum("bij,bkj->bik", x, y), (3, 4, 6), (3, 5, 6)),
    "conv": (convolved, (2, 5, 6, 3), (2, 2, 3, 4)),
}


def run_by(how: str, function: Callable[..., Any], *given: np.ndarray) -> list[np.ndarray]:
    """Return the value of a product on CuPy, and its gradients."""

    def both(x: Any, y: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch((x, y))
            found = function(x, y)
        return [found, *tape.gradient(found, [x, y], output_gradients=gt.ones_like(found))]

    with gt.backend("cupy"):
        arrays = [gt.constant(x) for x in given]
        if how == "eager":
            return [x.numpy() for x in both(*arrays)]
        compiled = gt.function(both)
        with gt.executor(how):
            for _ in range(3):
                found = [x.numpy() for x in compiled(*arrays)]
    return found


def wanted(
    function: Callable[..., Any], *given: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the same in full precision, and for operands that are rounded to TF32."""
    return run_on_numpy(function, *given), run_on_numpy(function, *map(rounded, given))


def run_on_numpy(function: Callable[..., Any], *given: np.ndarray) -> list[np.ndarray]:
    xs = [gt.constant(x) for x in given]
    with gt.GradientTape() as tape:
        tape.watch(xs)
        found = function(*xs)
    gradients = tape.gradient(found, xs, output_gradients=gt.ones_like(found))
    return [x.numpy() for x in (found, *gradients)]


def near(found: list[np.ndarray], right: list[np.ndarray]) -> bool:
    """Return whether two lists of arrays are equal but for the order of sums."""
    pairs = zip(found, right, strict=True)
    return all(np.allclose(x, y, rtol=2e-6, atol=2e-6) for x, y in pairs)


# -- TF32 ----------------------------------------------------------------------------------------


@HOW
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_and_its_gradients_have_the_precision_that_is_set(
    cupy: Any, name: str, how: str
) -> None:
    function, *shapes = PRODUCTS[name]
    given = [R(*shape) for shape in shapes]
    full, short = wanted(function, *given)
    assert not near(full, short)
    assert near(run_by(how, function, *given), full)
    with matmul_precision("tf32"):
        found = run_by(how, function, *given)
    outer = "vector" in name  # a gradient is an outer product, which needs no sums
    for i, x in enumerate(found):
        assert near([x], [short[i]]) or (outer and i and near([x], [full[i]]))
    with matmul_precision("float32"):
        assert near(run_by(how, function, *given), full)


@HOW
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_environment_chooses_if_nothing_else_does(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    function, *shapes = PRODUCTS[name]
    given = [R(*shape) for shape in shapes]
    full, short = wanted(function, *given)
    if name == "matrices":
        assert near(run_by(how, function, *given), short)
    with matmul_precision("float32"):
        assert near(run_by(how, function, *given), full)
    set_matmul_precision("float32")
    with matmul_precision("default"):
        if name == "matrices":
            assert near(run_by(how, function, *given), short)


@pytest.mark.parametrize("how", ["default", "cuda_graphs"])
def test_one_trace_and_plan_follow_the_precision_of_each_call(cupy: Any, how: str) -> None:
    x, y = R(4, 6), R(6, 5)
    right = {"float32": x @ y, "tf32": rounded(x) @ rounded(y)}
    right["default"] = right["float32"]
    with gt.backend("cupy"), gt.executor(how):
        a, b = gt.constant(x), gt.constant(y)
        f = gt.function(lambda x, y: gt.matmul(x, y) + 0.0)
        for precision in ["default", "tf32", "tf32", "tf32", "float32", "tf32", "default"] * 2:
            with matmul_precision(precision):
                np.testing.assert_allclose(f(a, b).numpy(), right[precision], rtol=2e-6, atol=2e-6)
                (concrete,) = f.concrete_functions
                told = "TF32 allowed" if precision == "tf32" else "full precision"
                assert told in concrete.explain()
    assert cupy.seen.captures == 2 * (how == "cuda_graphs")


def test_other_dtypes_have_one_graph_for_all_precisions(cupy: Any) -> None:
    f = gt.function(lambda x: x @ x + 0.0)
    with gt.backend("cupy"), gt.executor("cuda_graphs"):
        x = gt.constant(R(4, 4).astype("float64"))
        for precision in ["default", "tf32", "float32"] * 2:
            with matmul_precision(precision):
                f(x)
                assert "precision" not in f.concrete_functions[0].explain()
    assert cupy.seen.captures == 1
    assert cupy.seen.tf32 == 0


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", "complex128", "int32"])
def test_other_dtypes_are_computed_as_before(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    x = (R(4, 6) * 9).astype(dtype)
    for variable in (None, "1"):
        if variable:
            monkeypatch.setenv(VARIABLE, variable)
            products.cupy_rounds.cache_clear()
        with gt.backend("cupy"):
            a = gt.constant(x)
            for precision in ("float32", "tf32"):
                with matmul_precision(precision):
                    found = (a @ gt.swapaxes(a, 0, 1)).numpy()
                assert found.dtype == dtype
                tight = 1e-3 if dtype == "float16" else 1e-6
                np.testing.assert_allclose(found, x @ x.T, rtol=tight, atol=tight * 99)
    assert cupy.seen.tf32 == 0


def test_threads_compute_with_their_own_precision_at_the_same_time(cupy: Any) -> None:
    x, y = R(4, 6), R(6, 5)
    right = {"float32": x @ y, "tf32": rounded(x) @ rounded(y)}
    f, wrong = gt.function(lambda x, y: gt.matmul(x, y) + 0.0), []

    def work(precision: str) -> None:
        with gt.backend("cupy"), matmul_precision(precision):
            a, b = gt.constant(x), gt.constant(y)
            for _ in range(30):
                found = [f(a, b).numpy(), gt.matmul(a, b).numpy()]
                if not near(found, [right[precision]] * 2):
                    wrong.append(precision)

    threads = [threading.Thread(target=work, args=(p,)) for p in [*right, *right]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("how", ["eager", "default"])
def test_full_precision_is_refused_where_only_cupy_can_multiply_and_rounds(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    cupy.seen.cublas = NoLibrary("libcublas.so.12 cannot be loaded")
    x, y = COARSE, COARSE.T
    for precision in ("tf32", "float32", "default"):
        with matmul_precision(precision):  # TF32 is allowed, not required
            assert near(run_by(how, gt.matmul, x, y), run_on_numpy(gt.matmul, x, y))
    monkeypatch.setenv(VARIABLE, "1")
    products.cupy_rounds.cache_clear()
    for precision in ("tf32", "default"):
        with matmul_precision(precision):
            assert near(run_by(how, gt.matmul, x, y), run_on_numpy(gt.matmul, x, y))
    with matmul_precision("float32"), pytest.raises(RuntimeError, match=r"libcublas.*unset"):
        run_by(how, gt.matmul, x, y)


def test_empty_products_and_wrong_shapes_are_as_before(cupy: Any) -> None:
    with gt.backend("cupy"), matmul_precision("tf32"):
        assert gt.matmul(gt.ones((3, 0)), gt.ones((0, 2))).tolist() == [[0, 0]] * 3
        assert gt.matmul(gt.ones((0, 3)), gt.ones((3, 2))).shape == (0, 2)
        assert gt.matmul(gt.ones(3), gt.ones(3)).tolist() == 3.0
        mixed = gt.matmul(gt.ones((2, 3), "float16"), gt.ones((3, 2)))
        assert mixed.dtype == np.float32
        assert mixed.tolist() == [[3, 3]] * 2
        with pytest.raises(ValueError, match="matmul"):
            gt.matmul(gt.ones((2, 3)), gt.ones((4, 2)))


# -- bfloat16 ------------------------------------------------------------------------------------


def trained(where: str, how: str, activation: str, precision: str = "default") -> tuple[Any, str]:
    """Train layers of each kind in bfloat16; return the losses and weights, and the plan."""
    gt.random.set_seed(0)
    with gt.backend(where), gt.executor(how), gt.mixed_precision.policy("mixed_bfloat16"):
        model = gt.layers.Sequential(
            [
                gt.layers.Conv2D(4, 3, activation=activation, padding="same"),
                gt.layers.MaxPooling2D(2),
                gt.layers.Flatten(),
                gt.layers.Dense(8, activation=activation),
                gt.layers.Dense(3, dtype="float32"),
            ]
        )
        optimizer = gt.training.SGD(0.05)

        @gt.function
        def step(x: Any) -> Any:
            with gt.GradientTape() as tape:
                loss = gt.mean(model(x, training=True) ** 2)
            variables = list(model.trainable_variables)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        x = gt.constant(R(4, 6, 6, 3))
        with matmul_precision(precision):
            losses = [step(x).item() for _ in range(4)]
            text = step.concrete_functions[0].explain()
        return [np.array(losses), *(v.numpy() for v in model.variables)], text


@pytest.mark.parametrize("how", ["default", "cuda_graphs"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_training_in_bfloat16_multiplies_16_bits_and_gives_the_same(
    cupy: Any, how: str, activation: str, precision: str
) -> None:
    found, text = trained("cupy", how, activation, precision)
    right, _ = trained("numpy", "plain", activation)
    for x, y in zip(found, right, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-2, atol=1e-3)
    assert cupy.seen.bfloat16
    assert " of bfloat16" in text
    assert "a call of the kernel" not in text


def rounding(x: Any) -> Any:
    return ops["round_to_bfloat16"](x)


#: Steps on a matrix after which bfloat16 can still represent its numbers, and others.
KEEPING: list[Callable[[Any], Any]] = [
    lambda x: gt.nn.relu(x),
    lambda x: -x,
    lambda x: gt.abs(x),
    lambda x: gt.minimum(x, 0.25),
    lambda x: gt.where(x > 0.1, x, -1.5),
    lambda x: gt.swapaxes(x, 0, 1),
    lambda x: x[::-1],
    lambda x: gt.reshape(x, (-1, 3)),
    lambda x: gt.concat([x, gt.maximum(x, -0.5)], axis=1),
    lambda x: x * gt.cast(x > 0, "float32"),
    rounding,
]
OTHERS: list[Callable[[Any], Any]] = [
    lambda x: x + 1.0,
    lambda x: x * 0.3,
    lambda x: gt.minimum(x, 0.1),
    lambda x: gt.where(x > 0.1, x, 0.7),
    lambda x: gt.tanh(x),
    lambda x: x * x,
    lambda x: gt.maximum(x, x / 3),
]


@pytest.mark.parametrize("seed", range(20))
def test_only_numbers_of_bfloat16_are_read_in_16_bits(cupy: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    exact, chains = True, []
    for _ in range(2):
        chain, fits = [], False
        for kind in [rounding, *rng.choice(4, rng.integers(1, 5))]:
            one = kind
            if kind is not rounding:
                steps = KEEPING if kind else OTHERS
                one = steps[rng.integers(len(steps))]
            fits = one is rounding or (fits and one in KEEPING)
            chain.append(one)
        exact = exact and fits
        chains.append(chain)

    def program(x: Any, y: Any) -> Any:
        for one in chains[0]:
            x = one(x)
        for one in chains[1]:
            y = one(y)
        x, y = gt.reshape(x, (x.shape[0], -1)), gt.reshape(y, (-1, y.shape[-1]))
        size = min(x.shape[1], y.shape[0])
        return x[:, :size] @ y[:size] + 0.0

    given = R(6, 9), R(9, 6) + 1
    right = program(*map(gt.constant, given)).numpy()
    f = gt.function(program)
    with gt.backend("cupy"):
        found = f(*map(gt.constant, given)).numpy()
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)
    assert cupy.seen.products == 1
    assert cupy.seen.bfloat16 == exact


def test_every_number_keeps_its_value_in_16_bits(cupy: Any) -> None:
    bits = np.arange(2**16, dtype=np.uint32) << 16
    x = bits.view(np.float32).reshape(-1, 1, 1)
    f = gt.function(lambda x, y: rounding(x) @ rounding(y) + 0.0)
    with gt.backend("cupy"):
        found = f(gt.constant(x), gt.constant(np.ones_like(x))).numpy()
    assert cupy.seen.bfloat16 == 1
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("state", ["old", "without cuBLAS"])
def test_without_products_of_16_bits_the_numbers_are_the_same(cupy: Any, state: str) -> None:
    cupy.seen.recent = state != "old"
    cupy.seen.cublas = NoLibrary("none") if state != "old" else None
    x, y = R(4, 6), R(6, 5)
    f = gt.function(lambda x, y: rounding(x) @ rounding(y) + 0.0)
    with gt.backend("cupy"):
        found = f(gt.constant(x), gt.constant(y)).numpy()
        text = f.concrete_functions[0].explain()
    np.testing.assert_allclose(found, rounded(x, 7) @ rounded(y, 7), rtol=1e-5, atol=1e-6)
    assert "of bfloat16" not in text


# -- float16 -------------------------------------------------------------------------------------


@HOW
@pytest.mark.parametrize(
    "name", [*PRODUCTS, "vectors", "columns", "all axes", "sum", "mean", "average pooling"]
)
def test_float16_is_summed_in_float32_and_rounded_once(cupy: Any, name: str, how: str) -> None:
    """4097 times 1, which float16 cannot count to: it ends at 2048."""
    many = 4097
    ones = np.ones((1, many), "float16")
    functions: dict[str, tuple[Callable[..., Any], np.ndarray, np.ndarray]] = {
        "sum": (lambda x, y: gt.sum(x, axis=1) * y[0, 0], ones, ones),
        "mean": (lambda x, y: gt.mean(x, axis=1) * y[0, 0] * many, ones, ones),
        "average pooling": (
            lambda x, y: gt.nn.avg_pool(x, (many,), strides=1, padding="valid") * y[0, 0] * many,
            ones[..., None], ones,
        ),
        "matrices": (gt.matmul, ones, ones.T),
        "transposed": (lambda x, y: gt.swapaxes(x, 0, 1) @ y, ones.T, ones.T),
        "stacks": (gt.matmul, ones[None], ones.T),
        "broadcast": (gt.matmul, ones[None], np.stack([ones.T] * 2)),
        "a vector": (gt.matmul, ones, ones[0]),
        "a vector before": (gt.matmul, ones[0], ones.T),
        "tensordot": (lambda x, y: gt.tensordot(x, y, axes=((1,), (1,))), ones, ones),
        "vectors": (gt.matmul, ones[0], ones[0]),
        "columns": (gt.matmul, np.ones((2, many), "float16"), np.ones((many, 3), "float16")),
        "all axes": (lambda x, y: gt.tensordot(x, y, axes=((0, 1), (1, 0))), ones, ones.T),
        "einsum": (lambda x, y: gt.einsum("bij,bkj->bik", x, y), ones[None], ones[None]),
        "conv": (convolved, ones[..., None], ones.reshape(many, 1, 1)),
    }  # fmt: skip
    function, x, y = functions[name]
    for found in run_by(how, lambda x, y: gt.cast(function(x, y), "float16"), x, y)[:1]:
        assert found.dtype == np.float16
        assert set(found.ravel().tolist()) == {4096.0}


# -- cuBLAS --------------------------------------------------------------------------------------


@pytest.mark.parametrize("capability", ["75", "80", "90", "120"])
def test_cublas_is_told_the_types_of_operands_results_and_sums(
    monkeypatch: pytest.MonkeyPatch, capability: str
) -> None:
    """Its numbers are those of its header: CUDA_R_32F is 0, CUBLAS_COMPUTE_32F is 68, ..."""
    calls: list[tuple[Any, ...]] = []

    class Library:
        def __getattr__(self, name: str) -> Callable[..., int]:
            return lambda *given: calls.append((name, *given)) or 0  # type: ignore[func-returns-value]

    monkeypatch.setattr(products, "_library", lambda major: Library())
    cuda = SimpleNamespace(
        cublas=SimpleNamespace(getVersion=lambda handle: 120900),
        device=SimpleNamespace(get_cublas_handle=lambda: 1),
        Device=lambda: SimpleNamespace(compute_capability=capability),
    )
    handle = CublasHandle(SimpleNamespace(cuda=cuda))
    array = SimpleNamespace(data=SimpleNamespace(ptr=4))
    told = {}
    for kind in ("e", "f", "d", "F", TF32, BFLOAT16):
        handle.multiply(kind, (0, 1), (2, 3, 5), 7, (array, 2, 0), (array, 3, 0), (array, 2, 6))
        name, *given = calls[-1]
        assert name == "cublasGemmStridedBatchedEx"
        told[kind] = [given[i] for i in (8, 12, 17, 21)]
    recent = int(capability) >= 80
    assert handle.has_bfloat16 == recent
    assert told == {
        "e": [2, 2, 2, 68],
        "f": [0, 0, 0, 68],
        "d": [1, 1, 1, 70],
        "F": [4, 4, 4, 68],
        TF32: [0, 0, 0, 77 if recent else 68],
        BFLOAT16: [14, 14, 0, 68],
    }


@pytest.mark.parametrize("precision", ["default", "tf32"])
@pytest.mark.parametrize("axes", [1, 2, 0, (0, -1), ((0, 2), (2, 1)), ([1], [0])])
def test_the_namespace_takes_the_axes_that_numpy_takes(
    cupy: Any, axes: Any, precision: str
) -> None:
    xp = gt.registry().backends["cupy"].xp
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, (3, 3, 3)).astype("float32") for _ in range(2))
    with matmul_precision(precision):
        found = xp.tensordot(xp.asarray(x), xp.asarray(y), axes=axes)
    np.testing.assert_array_equal(cupy.asnumpy(found), np.tensordot(x, y, axes))


def test_sizes_that_cublas_cannot_read_are_an_error() -> None:
    handle = CublasHandle.__new__(CublasHandle)
    large, x = 2**31 + 3, (None, 1, 1)
    with pytest.raises(ValueError, match=f"size of {large}, but cuBLAS takes"):
        handle.multiply("f", (0, 0), (large, 1, 1), 1, x, x, x)
    with pytest.raises(ValueError, match=f"size of {large}, but cuBLAS takes"):
        handle.prepared("key", "f", (0, 0), (1, 1, 1), 1, ((large, 1), (1, 1), (1, 1)))


def test_a_graph_keeps_the_handle_of_a_thread_that_has_ended(cupy: Any) -> None:
    kept: list[Any] = []

    @gt.function
    def step(x: Any, w: Any) -> Any:
        for _ in range(6):
            x = gt.tanh(x @ w)
        return x

    def compute() -> None:
        with gt.backend("cupy"), gt.executor("cuda_graphs"):
            for _ in range(3):
                step(gt.constant(R(3, 4)), gt.constant(R(4, 4)))
        kept.append(ref(products.products(gt.registry().backends["cupy"].xp).handle()))

    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()
    gc.collect()
    assert cupy.seen.captures == 1
    assert kept[0]() is not None
