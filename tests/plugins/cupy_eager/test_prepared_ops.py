"""Ops that run one by one as prepared launches: NumPy's numbers, for all layouts of arrays."""

from __future__ import annotations

import contextlib
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import OutOfMemory
from gradtape.plugin import Op
from gradtape.plugins.cupy import launching
from gradtape.plugins.cupy.eager import launchers
from gradtape.plugins.cupy.writing.source import compiled

_DTYPES = ("float32", "float64", "float16", "int32", "int8", "uint8", "bool")
_UNARY = (gt.tanh, gt.nn.sigmoid, gt.nn.relu, gt.negative, gt.abs, gt.square, gt.exp)
_BINARY = (gt.add, gt.multiply, gt.subtract, gt.maximum, gt.less, gt.divide, gt.not_equal)
_REDUCTIONS = (gt.sum, gt.mean, gt.max, gt.min, gt.nn.softmax)

#: What a sum of few numbers may differ by, as a part of them.
_TOLERANCE = {2: 4e-3, 4: 3e-6, 8: 1e-13}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the tables of plans that are made, as they are made."""
    tables: list[Any] = []
    init = launchers.Launcher.__init__

    def note(self: Any, *args: Any) -> None:
        init(self, *args)
        tables.append(self)

    monkeypatch.setattr(launchers.Launcher, "__init__", note)
    for op in gt.registry().ops.values():
        op.forget_made()
    return tables


def there(x: Any) -> gt.Tensor:
    """Return an array as a tensor on CuPy, with the same strides."""
    with gt.backend("cupy"):
        if not isinstance(x, np.ndarray):
            return gt.constant(x)
        array = gt.registry().backend("cupy").xp.array(np.array(0, x.dtype))
        array.data = x
        return gt.constant(array)


@contextlib.contextmanager
def plugged(plugin: Any, name: str) -> Iterator[None]:
    """Register a plugin for a block."""
    gt.register_plugin(plugin, name)
    try:
        yield
    finally:
        gt.unregister_plugin(name)


def check(run: Callable[..., Any], *arrays: Any) -> None:
    """Compare results on CuPy with those on NumPy."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            want = run(*[gt.constant(x) if isinstance(x, np.ndarray) else x for x in arrays])
        except OverflowError:  # as CuPy does
            return
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                run(*[there(x) if isinstance(x, np.ndarray) else x for x in arrays])
            return
        found = run(*[there(x) if isinstance(x, np.ndarray) else x for x in arrays])
    mine, right = found.to("numpy").numpy(), want.numpy()
    assert (mine.shape, mine.dtype) == (right.shape, right.dtype)
    tolerance = _TOLERANCE.get(right.dtype.itemsize, 0) if right.dtype.kind == "f" else 0
    np.testing.assert_allclose(mine, right, rtol=tolerance, atol=tolerance)


def _random_array(random: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Return an array of some layout: transposed, with steps, backwards, spread, or plain."""
    numbers = random.integers(-5, 6, shape) if dtype != "bool" else random.integers(0, 2, shape)
    x = np.asarray(numbers / (1 if np.dtype(dtype).kind in "biu" else 4)).astype(dtype)
    match int(random.integers(0, 5)):
        case 0 if x.ndim > 1:
            return np.ascontiguousarray(x.T).T
        case 1 if x.ndim:
            return np.repeat(x, 2, axis=-1)[..., ::2]
        case 2 if x.ndim:
            return np.ascontiguousarray(x[::-1])[::-1]
        case 3 if x.ndim > 1 and x.shape[0]:
            return np.lib.stride_tricks.as_strided(
                np.ascontiguousarray(x[0]), x.shape, (0, *np.ascontiguousarray(x[0]).strides)
            )
    return np.array(x)


def _random_cases(seed: int, count: int) -> list[tuple[Callable[..., Any], list[Any]]]:
    random = np.random.default_rng(seed)
    cases: list[tuple[Callable[..., Any], list[Any]]] = []
    for _ in range(count):
        rank = int(random.integers(0, 4))
        shape = tuple(
            int(n) for n in random.choice([1, 2, 3, 5, 0], rank, p=[0.2, 0.3, 0.3, 0.15, 0.05])
        )
        dtype = str(random.choice(_DTYPES))
        x = _random_array(random, shape, dtype)
        kind = int(random.integers(0, 4))
        if kind == 0:
            cases.append((_UNARY[int(random.integers(len(_UNARY)))], [x]))
        elif kind == 1:
            other = tuple(n if random.random() < 0.6 else 1 for n in shape)
            y = _random_array(
                random, other[int(random.integers(0, rank + 1)) :], str(random.choice(_DTYPES))
            )
            cases.append(
                (_BINARY[int(random.integers(len(_BINARY)))], [x, y][:: random.choice([1, -1])])
            )
        elif kind == 2:
            number = [2, -1, 0.5, True, 300, 1e39][int(random.integers(6))]
            pair = [x, number] if random.random() < 0.5 else [number, x]
            cases.append((_BINARY[int(random.integers(len(_BINARY)))], pair))
        elif rank:
            axis = int(random.integers(-rank, rank))
            function = _REDUCTIONS[int(random.integers(len(_REDUCTIONS)))]
            keep = {} if function is gt.nn.softmax else {"keepdims": bool(random.integers(2))}
            cases.append((lambda x, f=function, a=axis, k=keep: f(x, axis=a, **k), [x]))
    return cases


@pytest.mark.parametrize("seed", range(2))
def test_random_ops_give_numpys_numbers(cupy: Any, seed: int) -> None:
    cases = _random_cases(seed, 150)
    cupy.seen.dry = True  # so that all kernels are compiled together
    for run, arrays in cases:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                run(*[there(x) if isinstance(x, np.ndarray) else x for x in arrays])
    cupy.seen.dry, before = False, cupy.seen.launches
    for run, arrays in cases:
        check(run, *arrays)
    assert cupy.seen.launches - before > 60


def test_kernels_are_compiled_for_patterns_and_not_for_sizes(cupy: Any) -> None:
    def run(n: int, m: int) -> None:
        x = np.random.default_rng(n).standard_normal((n, m)).astype("f")
        check(lambda x, y: gt.sum(gt.tanh(x * 2.0 + y), axis=1), x, x[0].copy())
        check(lambda x: gt.nn.log_softmax(x), x)
        check(lambda x: gt.mean(x, axis=0), x)
        check(lambda x, y: gt.concat([x, y], axis=1), x, x)

    run(3, 7)
    before = compiled.cache_info().misses
    for n, m in ((2, 5), (4, 6), (3, 8), (2, 9)):
        run(n, m)
    assert compiled.cache_info().misses == before


def test_losses_and_normalisation_are_few_launches(cupy: Any) -> None:
    random = np.random.default_rng(0)
    x, labels = random.standard_normal((6, 5)).astype("f"), np.arange(6) % 5
    ops = gt.registry().ops

    def gradients(x: Any, *rest: Any) -> Any:
        labels = (
            there(np.arange(6) % 5)
            if x.device.startswith("cupy")
            else gt.constant(np.arange(6) % 5)
        )
        with gt.GradientTape() as tape:
            tape.watch(x)
            y, *_ = ops["batch_norm_training"](x, *rest)
            losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=y)
            loss = gt.mean(losses)
        return tape.gradient(loss, x)

    check(gradients, x, np.ones(5, "f"), np.zeros(5, "f"))
    before = cupy.seen.launches
    check(gradients, x, np.ones(5, "f"), np.zeros(5, "f"))
    assert 1 <= cupy.seen.launches - before <= 25
    assert labels.max() == 4


def test_tables_of_plans_are_bounded(
    cupy: Any, found: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launchers, "_PLANS", 4)
    for n in range(1, 10):
        check(gt.tanh, np.linspace(0, 1, n, dtype="f"))
        check(lambda x: gt.sum(x, axis=0), np.linspace(0, 1, n, dtype="f"))
    tables = [x for x in found if x.owner.name == "cupy" and x.op.name in ("tanh", "sum")]
    assert tables
    assert all(0 < len(x.plans) <= 4 for x in tables)


def test_an_op_without_plans_is_soon_left_to_cupy(cupy: Any, found: list[Any]) -> None:
    for n in range(1, 40):
        check(lambda x: gt.cumsum(x, axis=0), np.ones(n, "f"))
    tables = [x for x in found if x.op.name == "cumsum"]
    assert tables
    assert all(len(table.plans) < 20 for table in tables)
    for n in range(1, 40):  # attempts for other dtypes do not matter
        check(lambda x: gt.sum(x, axis=0), np.ones(n, "int32"))
    before = cupy.seen.launches
    check(lambda x: gt.sum(x, axis=0), np.ones(3, "f"))
    assert cupy.seen.launches - before == 1


def test_numbers_that_vary_and_those_of_no_plan(cupy: Any) -> None:
    x = np.array([1, 2, 200], "uint8")
    for number in (1, 7, -1, 300, 2, 1.5, True):
        check(gt.less, x, number)
        check(gt.add, x, number)
        check(gt.multiply, number, x.astype("f"))
    for low in (-1.0, 0.0, -0.0, 2.0):
        check(lambda x, low=low: gt.clip(x, low, 3.0), x.astype("f"))


def test_shapes_that_do_not_fit_are_the_errors_that_they_were(cupy: Any) -> None:
    for _ in range(3):
        with pytest.raises(ValueError, match="add"):
            there(np.ones((2, 3), "f")) + there(np.ones((2, 4), "f"))
    check(gt.add, np.ones((2, 3), "f"), np.ones((2, 3), "f"))


def test_products_run_on_the_current_stream_and_are_those_of_compiled_programs(cupy: Any) -> None:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(shape).astype("f") for shape in ((4, 5), (5, 3)))
    product = gt.function(lambda x, y: x @ y)
    before = cupy.seen.products
    for stream in (cupy.cuda.Stream(), None, cupy.cuda.Stream()):
        if stream is not None:
            stream.__enter__()
        try:
            check(gt.matmul, x, y)
            check(lambda x: gt.transpose(x) @ x, x)
            mine, other = there(x) @ there(y), product(there(x), there(y))
            assert mine.numpy().tobytes() == other.numpy().tobytes()
        finally:
            if stream is not None:
                stream.__exit__()
    assert cupy.seen.products - before == 12


def test_threads_make_and_use_plans_at_once(cupy: Any, found: list[Any]) -> None:
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for n in (3, 4, 5):
                x = np.random.default_rng(seed).standard_normal((n, 3)).astype("f")
                check(lambda x: gt.sum(gt.tanh(x) + 1.0, axis=0), x)
                check(gt.matmul, x, x.T.copy())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_a_lack_of_memory_is_told_with_the_op(cupy: Any) -> None:
    x = there(np.ones((4, 4), "f"))
    gt.tanh(x), gt.sum(x, axis=0), x @ x
    library = cupy.ndarray.library
    for run, name in (
        (lambda: gt.tanh(x), "tanh"), (lambda: x + x, "add"),
        (lambda: gt.sum(x, axis=0), "sum"), (lambda: x @ x, "matmul"),
    ):  # fmt: skip
        library.left = 0
        try:
            with pytest.raises(OutOfMemory, match=name):
                run()
        finally:
            library.left = float("inf")


def test_where_kernels_cannot_be_compiled_cupys_functions_run_and_it_is_told_once(
    cupy: Any, found: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, log_stream: Any = None) -> None:
        raise RuntimeError("nvrtc: error: invalid value for --gpu-architecture")

    monkeypatch.setattr(cupy.RawKernel, "compile", fail)
    monkeypatch.setattr(launching, "_reported", False)
    compiled.cache_clear()
    x = np.ones((2, 3), "f")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        np.testing.assert_array_equal(gt.exp(there(x)).numpy(), gt.exp(gt.constant(x)).numpy())
        np.testing.assert_array_equal((there(x) + 1).numpy(), x + 1)
    (one,) = told
    assert "CuPy's functions run instead" in str(one.message)
    assert "gpu-architecture" in str(one.message)


def test_ops_of_plugins_have_kernels_if_their_steps_have(cupy: Any) -> None:
    def kernel(xp: Any, x: Any, y: Any, *, by: float = 2.0) -> Any:
        return xp.tanh(x * by) + y * y

    mixed = Op(
        "acme::mixed", kernel, batch="elementwise", broadcasts=True,
        infer=lambda x, y, by: (np.broadcast_shapes(x.shape, y.shape), x.dtype),
    )  # fmt: skip
    other = types.SimpleNamespace(
        gradtape_kernels=gt.hookimpl(lambda: {("acme::mixed", "cupy"): lambda x, y, by=2.0: x})
    )
    x = np.random.default_rng(0).standard_normal((3, 4)).astype("f")
    with plugged(types.SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [mixed])), "acme"):
        run = gt.registry().op("acme::mixed")
        check(run, x, x[0].copy())
        before = cupy.seen.launches
        check(lambda x, y: run(x, y, by=3.0), x, x[0].copy())
        assert cupy.seen.launches - before == 1
        with plugged(other, "other"):  # a kernel of a plugin comes first
            assert (run(there(x), there(x)).numpy() == x).all()


def test_a_formula_in_cuda_c_makes_a_kernel_of_an_op_for_the_host(cupy: Any) -> None:
    twice = Op(
        "acme::twice", lambda xp, x: np.asarray(x) * 2, infer=lambda x: (x.shape, x.dtype),
        batch="elementwise", host=True,
    )  # fmt: skip
    formula = {("acme::twice", "cuda"): lambda step: ("{0} + {0}", [step.out.dtype])}
    plugin = types.SimpleNamespace(
        gradtape_ops=gt.hookimpl(lambda: [twice]),
        gradtape_lowerings=gt.hookimpl(lambda: formula),
    )
    with plugged(plugin, "acme"):
        before = cupy.seen.launches
        check(gt.registry().op("acme::twice"), np.linspace(-1, 1, 6, dtype="f").reshape(2, 3).T)
        assert cupy.seen.launches - before == 1
