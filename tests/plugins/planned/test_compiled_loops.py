"""Loops that LLVM compiles: NumPy's bits, NumPy's warnings, and kept for the next process."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import gradtape as gt

pytest.importorskip("llvmlite", reason='pip install "gradtape[fused]"')

SPECIAL = [0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 1e-40, 3e38]
EXACT = {
    "arithmetic": lambda x, y: (x + y) * x - y / 3.0,
    "roots": lambda x, y: gt.sqrt(gt.square(x)) - gt.abs(y),
    "bounds": lambda x, y: gt.maximum(x, 0.0) + gt.minimum(x, y) - gt.maximum(y, x),
    "choices": lambda x, y: gt.where((x > y) | gt.isnan(x), x * 2.0, -y),
    "comparisons": lambda x, y: gt.cast(x >= y, "float32") + gt.cast(gt.not_equal(x, y), "float32"),
    "roundings": lambda x, y: gt.floor(x) + gt.ceil(y) - gt.rint(x) * gt.trunc(y),
    "dtypes": lambda x, y: gt.cast(x, "float64") * y + gt.cast(gt.cast(x > 0, "int32"), "float64"),
    "sums of rows": lambda x, y: (gt.sum(x * y - x, axis=0), (x - y) * 0.5),
}


def fields() -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32))
    return np.tile(x, (9, 7)), np.tile(y, (9, 7))


def both(f, *arrays, beside="plain"):
    """Return what a function gives by loops, and by NumPy."""
    given = [gt.constant(x) for x in arrays]
    loops = gt.function(f, executor="fused")
    with np.errstate(all="ignore"):
        found = [loops(*given), gt.function(f, executor=beside)(*given)]
    return [y if isinstance(y, tuple) else [y] for y in found], loops


def same_bits(a, b) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "f":  # of nan, the bits are nobody's
        a, b = np.where(np.isnan(a), np.nan, a), np.where(np.isnan(b), np.nan, b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("other", ["whole", "row", "column", "number"])
def test_loops_compute_the_bits_of_numpy(name: str, other: str) -> None:
    x, y = fields()
    y = {"whole": y, "row": y[:1].copy(), "column": y[:, :1].copy(), "number": y[3, 3]}[other]
    (found, wanted), loops = both(EXACT[name], x, y)
    assert "loop" in loops.explain(gt.constant(x), gt.constant(y))
    for a, b in zip(found, wanted, strict=True):
        assert same_bits(a, b)


def test_strided_arrays_give_the_same_sums() -> None:
    x = np.asarray(np.random.default_rng(0).random((64, 33)), np.float32, order="F")
    y = np.random.default_rng(1).random((66, 64), dtype=np.float32).T[:, ::2]
    (found, wanted), _ = both(EXACT["sums of rows"], x, y, beside="planned")
    assert all(map(same_bits, found, wanted))


def test_sums_of_negative_zeros_have_numpys_sign() -> None:
    (found, wanted), loops = both(lambda x: gt.sum(x * 1.0, axis=0), np.full((3, 7), -0.0))
    assert "one loop" in loops.explain(gt.constant(np.zeros((3, 7))))
    assert all(map(same_bits, found, wanted))


def test_numpy_warns_of_what_happens_in_a_loop() -> None:
    f = gt.function(lambda x: (x * 2.0 + 1.0) / (x - x), executor="fused")
    x = gt.constant(np.ones(5000, np.float32))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        f(x)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        f(x)
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.simplefilter("error")
        for _ in range(20):
            assert np.isinf(f(x).numpy()).all()


FUNCTIONS = {"cos": gt.cos, "exp": gt.exp, "log": gt.log, "sin": gt.sin}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("few", [True, False])
def test_functions_of_single_precision_have_the_bits_of_numpy(name: str, few: bool) -> None:
    bits = np.arange(0, 2**32, 2**12 if few else 99_991, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    arrays = [x]
    if few:  # each where nothing is left to NumPy
        arrays = [np.linspace(0.01, 80, n, dtype=np.float32) for n in (1, 2, 3, 5, 7, 10, 17, 40)]
        arrays += [np.array(SPECIAL, np.float32), x[:9]]
    for array in arrays:
        (found, wanted), _ = both(lambda x: FUNCTIONS[name](x) * 1.5 - x, array, beside="planned")
        assert same_bits(found[0], wanted[0])


@pytest.mark.parametrize("name", ["cos", "exp", "sin"])
def test_range_reductions_are_rounded_as_numpy_does(name: str) -> None:
    period = np.log(2) if name == "exp" else np.pi / 2
    half = (np.arange(-120, 120) if name == "exp" else np.arange(-40_000, 40_000)) + 0.5
    edges = (half * period).astype(np.float32)
    near = edges.view(np.int32)[:, None] + np.arange(-9, 10, dtype=np.int32)
    x = near.ravel().view(np.float32)
    (found, wanted), _ = both(lambda x: FUNCTIONS[name](x) * 1.5, x, beside="planned")
    assert same_bits(found[0], wanted[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [1, 2, 3, 5, 6, 7, 10, 15, 17, 31, (5, 3), (7, 10), (4, 1)])
def test_the_rest_of_a_short_loop_is_not_divided_by_nothing(
    repeated, capfd, monkeypatch, dtype, shape
) -> None:
    monkeypatch.setenv("GRADTAPE_CACHE_DIR", "")
    x = gt.constant(np.linspace(1, 2, np.prod(shape), dtype=dtype).reshape(shape))
    f = gt.function(lambda x: gt.sqrt(x / (x + 2.0)) / (x - 9.0) + gt.log(x), executor="fused")
    f(x)
    assert "one loop" in f.explain(x)
    assert repeated == []
    assert capfd.readouterr().err == ""  # LLVM writes there by itself


def gates(x, y):
    first, second, third = x[:, :50], x[:, 50:100], x[:, 100:]
    return gt.nn.sigmoid(first) * y + gt.tanh(third) * second, gt.sum(second * first, axis=0)


def test_parts_of_rows_are_read_where_they_are(repeated) -> None:
    random = np.random.default_rng(0)
    x, y = random.standard_normal((40, 150)), random.standard_normal((40, 50))
    f = gt.function(gates, executor="fused")
    for given in (y, np.asfortranarray(y), np.repeat(y, 2, axis=1)[:, ::2], y[::-1], y):
        wanted = gt.function(gates, executor="planned")(gt.constant(x), gt.constant(given))
        repeated.clear()
        found = f(gt.constant(x), gt.constant(given))
        assert all(same_bits(a.numpy(), b.numpy()) for a, b in zip(found, wanted, strict=True))
    assert repeated == []
    assert "one loop" in f.explain(gt.constant(x), gt.constant(y))


LAYOUTS = [
    lambda x: x,
    lambda x: np.concatenate([x, x], axis=1)[:, : x.shape[1]],
    lambda x: np.concatenate([x, x, x], axis=1)[:, x.shape[1] : -x.shape[1]],
    lambda x: np.repeat(x, 2, axis=0)[::2],
    lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    np.asfortranarray,
    lambda x: x[::-1].copy()[::-1],
]


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """Each time that machine code leaves arrays to Python, with all that it reads."""
    from gradtape.plugins.fused import loops

    times, otherwise = [], loops.GroupLoop._otherwise

    def noted(group, refused, *arrays):
        times.append([x.strides for x in arrays])
        otherwise(group, refused, *arrays)

    monkeypatch.setattr(loops.GroupLoop, "_otherwise", noted)
    return times


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("parts", [False, True])
def test_arrays_in_any_order_of_memory_give_the_same_bits(seed: int, parts, monkeypatch) -> None:
    from gradtape.plugins.fused import loops

    if parts:
        monkeypatch.setattr(loops, "_LARGE", 1)
    random = np.random.default_rng(seed)
    f = gt.function(lambda x, y: (x / y + x) * (y - 1.0), executor="fused")
    for _ in range(40):
        x, y = random.standard_normal((2, 12, 10))
        if random.random() < 0.3:
            y[3, 4] = 0.0  # a warning: NumPy computes it, whatever the order in memory
        layouts = random.choice(len(LAYOUTS), 2)
        x, y = (LAYOUTS[i](a) for i, a in zip(layouts, (x, y), strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = f(gt.constant(x), gt.constant(y)).numpy()
            assert same_bits(found, (x / y + x) * (y - 1.0))


def test_strides_that_come_again_are_no_longer_asked_for(asked) -> None:
    x = np.random.default_rng(0).standard_normal((40, 30))
    f = gt.function(lambda x, y: (x * 2.0 + 1.0) * (x - y) + y, executor="fused")
    for layout in LAYOUTS[:3]:
        asked.clear()
        for _ in range(5):
            f(gt.constant(layout(x)), gt.constant(x))
        assert len(asked) <= 1


def test_a_scan_reads_parts_of_rows_where_they_are(asked) -> None:
    """The slopes of gates are computed before the loop, side by side."""
    layer = gt.layers.LSTM(8)
    x = gt.constant(np.random.default_rng(0).standard_normal((4, 30, 5)).astype(np.float32))
    layer(x)

    @gt.function(executor="fused")
    def gradient(x):
        with gt.GradientTape() as tape:
            loss = gt.sum(gt.square(layer(x)))
        return tape.gradient(loss, layer.trainable_variables)

    plain = gt.function(gradient.python_function, executor="planned")(x)
    for _ in range(3):
        found = gradient(x)
    assert all(same_bits(a.numpy(), b.numpy()) for a, b in zip(found, plain, strict=True))
    assert asked == []


def test_a_group_that_numpy_repeats_again_and_again_is_left_to_it(repeated) -> None:
    f = gt.function(lambda x: (x * 2.0 + 1.0) / (x - x), executor="fused")
    x, fine = gt.constant(np.ones(50)), gt.constant(np.full(50, np.nan))
    with np.errstate(divide="ignore"):
        for _ in range(20):
            f(x)
        assert len(repeated) == 20
        f(fine)
    assert len(repeated) == 21


@pytest.mark.parametrize("bad", [None, np.inf, np.nan])
def test_jacobians_multiply_infinities_as_they_are_written(bad: float | None, repeated) -> None:
    random = np.random.default_rng(0)
    x, w, v = (gt.constant(random.standard_normal(n)) for n in ((6, 4), (4, 5), (5, 3)))
    if bad is not None:
        v = gt.constant(np.where(np.arange(15).reshape(5, 3) == 7, bad, v.numpy()))

    def jacobian(x):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.tanh(gt.square(x @ w) @ v)
        return tape.batch_jacobian(y, x)

    (found, wanted), loops = both(jacobian, x.numpy())
    assert "outer_products" in loops.explain(x)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12, atol=1e-12)
    assert bool(repeated) == (bad is not None)


# -- steps that NumPy's own inner loops compute ----------------------------------------------------

SMOOTH = {
    "tanh": lambda x, y: gt.tanh(x * 2.0 + y) * 0.5 - x,
    "several": lambda x, y: gt.exp(-gt.square(gt.tanh(x) * y)) + gt.log1p(gt.abs(gt.expm1(x))),
    "two operands": lambda x, y: gt.atan2(x + 1.0, y) - gt.atan2(y, 0.5 - x),
    "numbers": lambda x, y: gt.fmod(x * 3.0, 0.7) + gt.fmod(2.0, gt.abs(y) + 1.0),
    "truths": lambda x, y: gt.where(gt.isfinite(gt.log(x)), gt.sin(y), gt.cos(x)),
    "conversions": lambda x, y: gt.tanh(gt.cast(x * 9.0, "int32")) + gt.cast(gt.exp(y), "float64"),
    "chains": lambda x, y: gt.sin(gt.tanh(gt.exp(gt.sin(gt.cos(x) + y)))),
    "sums of rows": lambda x, y: (gt.sum(gt.tanh(x * y), axis=0), gt.exp(x) - y),
    "special": lambda x, y: gt.erf(x) * gt.lgamma(gt.abs(y) + 1.0),
}
SHAPES = [(1,), (10,), (3000,), (2, 3), (70, 50), (33, 1), (3, 5000), (2, 3, 700)]


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_functions_have_the_bits_of_numpy(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    x, whole = (random.standard_normal(shape).astype(dtype) for _ in range(2))
    for y in (whole, whole[:1].copy(), whole.flat[0]):
        (found, wanted), loops = both(SMOOTH[name], x, y)
        assert "one loop" in loops.explain(gt.constant(x), gt.constant(y))
        assert all(map(same_bits, found, wanted))


ONE = [gt.tanh, gt.exp, gt.sin, gt.sqrt, gt.floor, gt.log1p, gt.erf, gt.nn.sigmoid]
TWO = [gt.add, gt.multiply, gt.subtract, gt.divide, gt.maximum, gt.atan2, gt.fmod, gt.logaddexp]


def random_program(random: np.random.Generator):
    """Return a function of three arrays that computes some steps, and the arrays."""
    shape = tuple(random.choice([1, 2, 5, 16, 33], random.integers(1, 4)))
    shapes = shape, shape[-1:], tuple(1 if random.random() < 0.4 else n for n in shape)
    kinds = random.choice(["float32", "float64"], 3)
    xs = [(random.standard_normal(s) * 3).astype(k) for s, k in zip(shapes, kinds, strict=True)]
    steps = [(random.choice(ONE + TWO), *random.integers(0, 99, 2)) for _ in range(12)]

    def f(*xs):
        values = list(xs)
        for op, i, j in steps:
            x, y = (values[-1 - k % min(4, len(values))] for k in (i, j))
            values.append(op(x) if op in ONE else op(x, y))
        return (*values[-4:], gt.sum(values[-1] * xs[0], axis=0))

    return f, xs


@pytest.mark.parametrize("seed", range(24))
def test_random_groups_have_the_bits_of_numpy(seed: int, monkeypatch) -> None:
    from gradtape.core.base import pool
    from gradtape.plugins.fused import loops, source

    random = np.random.default_rng(seed)
    f, xs = random_program(random)
    if seed % 2:  # small blocks, and parts
        monkeypatch.setattr(source, "_BLOCK", 16)
        monkeypatch.setattr(loops, "_LARGE", 1)
        monkeypatch.setattr(pool, "GRAIN", 1)
        monkeypatch.setattr(pool._Numbers, "default", 3)
    (found, wanted), _ = both(f, *xs, beside="planned")
    assert all(map(same_bits, found, wanted))


WARNING = {
    "before an inner loop": (lambda x: gt.sin(gt.isfinite(gt.tanh(x) / (x - x)) + 1.0), "divide"),
    "in one": (lambda x: gt.tanh(gt.log(x - x) * x) * 2.0, "divide by zero"),
    "in the last": (lambda x: gt.exp(x * 1000.0), "overflow"),
    "after the last": (lambda x: gt.tanh(x) / (x - x), "divide by zero"),
    "nowhere": (lambda x: gt.tanh(gt.exp(-x * 1000.0)) - gt.sin(x), ""),
    "of nan": (lambda x: gt.tanh(x * np.nan) + gt.exp(x * np.nan), ""),
}


@pytest.mark.parametrize("name", WARNING)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [5, 5000])
def test_groups_with_inner_loops_warn_as_numpy_does(name: str, dtype: str, count: int) -> None:
    f, message = WARNING[name]
    x = gt.constant(np.linspace(1, 2, count, dtype=dtype))
    told = []
    for executor in ("planned", "fused"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            gt.function(f, executor=executor)(x)
        told.append([str(warning.message) for warning in caught])
    assert told[0] == told[1]
    assert bool(told[0]) == bool(message)
    assert all(message in text for text in told[0])


def test_without_the_interface_of_inner_loops_numpy_calls_ufuncs(monkeypatch) -> None:
    from gradtape.plugins.fused import inner_loops

    monkeypatch.setattr(inner_loops, "_STRUCTURE", b"another structure")
    inner_loops.inner_loop.cache_clear()
    f = gt.function(lambda x: gt.tanh(x * 2.0) + 1.0, executor="fused")
    x = np.linspace(-2, 2, 50)
    assert same_bits(f(gt.constant(x)).numpy(), np.tanh(x * 2.0) + 1.0)
    assert "outside groups: tanh" in f.explain(gt.constant(x))
    monkeypatch.undo()
    inner_loops.inner_loop.cache_clear()


# -- parts -----------------------------------------------------------------------------------------

LARGE = {
    "flat": (lambda x, y: x * y + gt.sqrt(gt.abs(x)), (2**20,)),
    "rows": (lambda x, y: gt.tanh(x * y[:1]) - y, (700, 900)),
    "few rows": (lambda x, y: x * y[:, :1] - y, (3, 2**18)),
    "sums": (lambda x, y: (gt.sum(x * y, axis=0), gt.sum(gt.tanh(x), axis=0), x - y), (900, 700)),
    "warnings": (lambda x, y: x / gt.where(gt.abs(y) < 1e-3, 0.0, y), (2**20,)),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_groups_have_the_same_bits_by_any_number_of_threads(name: str, monkeypatch) -> None:
    from gradtape.core.base import pool

    f, shape = LARGE[name]
    random = np.random.default_rng(0)
    x, y = (gt.constant(random.standard_normal(shape).astype(np.float32)) for _ in range(2))
    results = []
    for executor, threads in (("planned", 1), ("fused", 1), ("fused", 2), ("fused", 5)):
        monkeypatch.setattr(pool._Numbers, "default", threads)
        with np.errstate(all="ignore"):
            found = gt.function(f, executor=executor)(x, y)
        results.append(found if isinstance(found, tuple) else (found,))
    for other in results[1:]:
        assert all(same_bits(a.numpy(), b.numpy()) for a, b in zip(results[0], other, strict=True))


def test_parts_of_a_group_warn_once(monkeypatch) -> None:
    from gradtape.core.base import pool

    monkeypatch.setattr(pool._Numbers, "default", 4)
    f = gt.function(lambda x: (x * 2.0 + 1.0) / (x - x), executor="fused")
    x = gt.constant(np.ones(2**20, np.float32))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(15):
            f(x)
    assert len(caught) == 15
    assert all("divide by zero" in str(warning.message) for warning in caught)


def training(executor: str | None):
    """Return the weights after some steps."""
    gt.random.set_seed(0)
    random = np.random.default_rng(0)
    x, y = gt.constant(random.random((32, 20), np.float32)), gt.constant(random.integers(0, 4, 32))
    layers = gt.layers
    model = layers.Sequential(
        [layers.Dense(24), layers.BatchNorm(), layers.Activation("relu"), layers.Dense(4)]
    )
    optimizer = gt.training.Adam(1e-2)
    model(x, training=True)

    @gt.function(executor=executor)
    def step(x, y):
        with gt.GradientTape() as tape:
            logits = model(x, training=True)
            loss = gt.mean(gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return model, lambda: step(x, y), lambda: step.explain(x, y)


def test_training_by_loops_gives_the_same_bits() -> None:
    (loops, step, explain), (planned, other, _) = training("fused"), training("planned")
    for _ in range(10):
        assert step().item() == other().item()
    assert "one loop" in explain()
    pairs = zip(loops.variables, planned.variables, strict=True)
    assert all(same_bits(a.numpy(), b.numpy()) for a, b in pairs)


LOOP = (
    "import gradtape as gt, numpy as np\n"
    "f = gt.function(lambda x: (x + 1.0) * x - 2.0, executor='fused')\n"
    "assert (f(gt.constant(np.ones(9000, np.float32))).numpy() == 0).all()\n"
    "assert 'one loop' in f.explain(gt.constant(np.ones(9000, np.float32)))\n"
)


def files_after_another_process(folder) -> dict[str, int]:
    """Compile a loop in a process of its own; return its cache's files, and when each was made."""
    env = {**os.environ, "GRADTAPE_CACHE_DIR": str(folder)}
    subprocess.run([sys.executable, "-c", LOOP], env=env, check=True, timeout=120)
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_another_process_finds_compiled_loops_unless_they_are_damaged(tmp_path) -> None:
    found = files_after_another_process(tmp_path)
    assert (tmp_path.stat().st_mode & 0o022) == 0
    assert files_after_another_process(tmp_path) == found
    assert len(found) == 2  # what Python calls, the same for all loops, and the loop
    right = {name: (tmp_path / name).read_bytes() for name in found}
    for name, code in right.items():
        (tmp_path / name).write_bytes(code[:100] + b"x" + code[101:])
    files_after_another_process(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in found} == right


def test_without_llvmlite_the_executor_says_what_to_install(monkeypatch) -> None:

    from gradtape.plugins import fused

    monkeypatch.setattr(
        fused, "unavailable", lambda: 'llvmlite is missing; pip install "gradtape[fused]"'
    )
    f = gt.function(lambda x: x * 2.0, executor="fused")
    with pytest.raises(gt.errors.BackendUnavailable, match=r'pip install "gradtape\[fused\]"'):
        f(gt.constant(1.0))


@pytest.mark.parametrize("place", ["DATA", "DTYPE", "HEADER", "RANK", "SHAPE", "STATE"])
def test_where_arrays_are_laid_out_otherwise_nothing_is_compiled(place: str, monkeypatch) -> None:
    from gradtape.plugins.fused import compiler

    assert compiler.unavailable() is None
    monkeypatch.setattr(compiler, place, getattr(compiler, place) + 8)
    assert "whose layout in NumPy" in (compiler.unavailable.__wrapped__() or "")


def test_a_broken_llvmlite_is_told_from_a_missing_one(monkeypatch) -> None:
    from gradtape.cli.doctor import diagnosis
    from gradtape.plugins.fused import compiler

    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)  # importing it fails
    with pytest.raises(gt.errors.BackendUnavailable, match="llvmlite cannot be imported"):
        compiler._engine.__wrapped__()
    assert "llvmlite cannot be imported" in diagnosis(measure=False)["executors"]["fused"]
