"""Values that leave a tape by NumPy or Python while another path to the target remains."""

from __future__ import annotations

import logging
import math
import statistics
import struct
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training
from gradtape.errors import BrokenPathWarning, GradientError

RNG = np.random.default_rng(0)
X = gt.constant(np.array([1.25, 2.5]))
TWO = np.array([0.75, -0.5])


def write(out, k, value):
    """Assign in a function that does nothing else with the array: it may be a log."""
    out[k] = value


def assigned(x):
    out = np.zeros(3)
    for k in range(3):
        write(out, k, x[k % 2])
    return np.sum(out)


def filled(x):
    out = np.ones(2)
    write(out, slice(None), [x[0], x[1]])
    return gt.sum(out * TWO)


def computed(x):
    out = np.ones(2)
    out[1] = math.sin(x[0])
    return gt.sum(out * TWO)


def doubled(x):
    out = np.ones(2)
    out[1] = 2 * float(x[0])
    return gt.sum(out * TWO)


def helper(value):
    return math.exp(value) / 3


class Parts:
    def __init__(self, x):
        self.part = float(x[0])


def named(x):
    c, s = np.cos(float(x[0])), np.sin(x[0].item())
    return gt.sum(np.array([[c, -s], [s, c]]) @ TWO * x)


def logged(x):
    values = []
    for part in x:
        values.append(part.item())  # noqa: PERF401
    return sum(values)


def turned(x):
    c, s = math.cos(x[0]), math.sin(x[0])
    return gt.sum(np.array([[c, -s], [s, c]]) @ TWO * x)


def inner(x):
    s = math.sin(x[0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(x * s)
    return gt.sum(tape.gradient(y, x))


def own_array(x):
    out = np.zeros(2)
    for k in range(2):
        out[k] = float(x[k])
    return x @ out


def own_list(x):
    values = []
    for part in x:
        values.append(2 * float(part))  # noqa: PERF401
    return x @ np.array(values)


def named_method(x):
    values = []
    add = values.append
    for part in x:
        add(float(part))
    return gt.sum(x * np.sqrt(values))


def own_dictionary(x):
    values = {}
    values["part"] = float(x[0])
    return math.sqrt(values["part"])


def own_sum(x):
    total = 0.5
    for part in x:
        total += float(part)
    return math.sqrt(total)


def own_object(x):
    keeper = Parts(gt.stop_gradient(x))
    keeper.part = float(x[0])
    return 2 * keeper.part


def large(x):
    out = np.zeros(90_000)
    write(out, 0, x[0])
    return gt.sum(x[1] * (2.0 * out))


def the_last_of_many(x):
    values = []
    for part in gt.concatenate([x] * 200) * gt.constant(np.arange(400.0)):
        values.append(float(part))  # noqa: PERF401
    return x[0] * values[-1]


def the_larger(x):
    best = float(x[0])
    if best < float(x[1]):
        best = float(x[1])
    return x[0] * best * 2


def named_in_a_test(x):
    return 2 * part if (part := float(x[0])) > 0 else 0.0


class Keeper:
    def __call__(self, x):
        self.part = part = float(x[0])
        return math.sin(part)


STATE = gt.Variable(np.array(0.5))
TRACED = gt.function(lambda x, a: gt.sum(x * a))
#: How a value leaves: x -> a number that depends on it, of which no gradient knows.
LEAVES = {
    "np.array": lambda x: gt.sum(np.array(x) ** 2),
    "np.asarray": lambda x: np.asarray(x)[1],
    "np.array of a list": lambda x: np.array([x[0], x[1]]).sum(),
    "np.array of rows": lambda x: gt.sum(np.array([x, x * 2.0]) * 1.5),
    "np.mean of a list": lambda x: np.mean([x[0], x[1]]),
    "np.max of a list": lambda x: np.max([x[0], x[1]]),
    "np.sin of a list": lambda x: gt.sum(np.sin([x[0], x[1]])),
    "np.sum along an axis": lambda x: gt.sum(np.sum([[x[0], x[1]]], axis=0) * TWO),
    "np.dot of a list": lambda x: np.dot([x[0], x[1]], [1.5, 2.5]),
    "np.linalg.det": lambda x: np.linalg.det([[x[0], x[1]], [0.5, 3.5]]),
    "np.linalg.solve": lambda x: gt.sum(np.linalg.solve([[x[0], 1.0], [0.0, x[1]]], TWO)),
    "np.full": lambda x: gt.sum(np.full(2, x[0])),
    "np.vectorize": lambda x: gt.sum(np.vectorize(lambda t: 2 * t)(x)),
    "np.fromiter": lambda x: gt.sum(np.fromiter([x[0], x[1]], float)),
    "np.float64": lambda x: np.float64(x[0]),
    "out[k] = x": assigned,
    "out[:] = [x]": filled,
    "out[k] = math.sin(x)": computed,
    "out[k] = 2 * float(x)": doubled,
    "math.sin": lambda x: math.sin(x[0]),
    "math.hypot": lambda x: math.hypot(x[0], x[1]),
    "math.fsum": lambda x: math.fsum([x[0], x[1]]),
    "math in a function": lambda x: helper(x[0]),
    "a matrix of math": turned,
    "a list of math": lambda x: gt.sum(x * [math.sin(x[0]), 1.0]),
    "gt.constant": lambda x: gt.constant(math.exp(x[0]), dtype="float64"),
    "times constants": lambda x: gt.sum(gt.constant(TWO) * math.exp(x[0])),
    "gt.full": lambda x: gt.sum(gt.full((2,), math.exp(x[0]), dtype="float64")),
    "gt.where": lambda x: gt.where(x[0] > 0, math.exp(x[0]), x[1]),
    "a power": lambda x: x[0] ** math.exp(x[1]),
    "a power of it": lambda x: math.exp(x[0]) ** x[1],
    "a slope": lambda x: gt.sum(gt.nn.leaky_relu(x - 2.0, math.sin(x[0]))),
    "a bound": lambda x: gt.sum(np.clip(x, 0.0, math.exp(x[0]) / 2)),
    "an argument of a trace": lambda x: TRACED(x, math.sin(x[0])),
    "a setting": lambda x: gt.quantile(x, math.sin(x[0])),
    "a random mean": lambda x: gt.sum(gt.random.normal((2,), math.sin(x[0]), 0.1)),
    "a range": lambda x: gt.sum(gt.linspace(0.0, math.exp(x[0]), 3)),
    "an update": lambda x: gt.sum(x.at[0].set(math.sin(x[1]))),
    "a closure": lambda x: (lambda s: gt.sum(gt.vmap(lambda a: a * s)(x)))(math.sin(x[0])),
    "an assigned variable": lambda x: STATE.assign(math.sin(x[0])) * x[0],
    "a new variable": lambda x: gt.Variable(math.sin(x[0]), dtype="float64") * x[0],
    "an inner gradient": inner,
    "a text": lambda x: float(str(float(x[0]))),
    "a decimal": lambda x: float(Decimal(x[0].item()).sqrt()),
    "struct": lambda x: struct.unpack("d", struct.pack("d", x[0]))[0] * 2,
    "float": lambda x: float(x[0]),
    "float and arithmetic": lambda x: 3 * float(x[0]) + 0.125,
    "float of a list": lambda x: sum([float(part) ** 2 for part in x]),
    "float into an array": lambda x: gt.sum(np.array([float(x[0]), 0.0]) * 1.0),
    "an array of floats": lambda x: gt.sum(np.array([2 * float(x[0]), math.sin(x[1])])),
    "an array of floats with names": named,
    "a list of logs": logged,
    "float in an attribute": lambda x: Parts(x).part,
    "equal to a literal": lambda x: 1.25 * x[1] * float(x[0]),
    "computed and equal to a literal": lambda x: 1.0 * x[1] * (1.0 / (0.8 * float(x[0]))),
    "into an array of its own": own_array,
    "into a list of its own": own_list,
    "by a method with a name": named_method,
    "into a dictionary of its own": own_dictionary,
    "a sum of its own": own_sum,
    "into an object of its own": own_object,
    "into a large array that changes": large,
    "the last of many values": the_last_of_many,
    "compared and then used": the_larger,
    "named in a test": named_in_a_test,
    "kept and used": Keeper(),
    "complex": lambda x: gt.real(gt.constant(complex(x[0]))),
    "int": lambda x: int(x[1]) * x[0] * x[1],
    "item": lambda x: x[0].item(),
    "item of an index": lambda x: x.item(1),
    "tolist": lambda x: gt.sum(gt.constant(x.tolist(), dtype="float64")),
    "map": lambda x: sum(map(float, x)),
    "random numbers": lambda x: RNG.normal(x[0], 0.001),
    "many random numbers": lambda x: gt.sum(RNG.uniform(x[0], x[1], 2)),
    "dlpack": lambda x: gt.sum(gt.from_dlpack(np.from_dlpack(x) * 2)),
    "a buffer": lambda x: gt.sum(np.frombuffer(memoryview(np.asarray(x))) * 2),
    "a format that is read": lambda x: float(np.asarray(x).sum()),
}
SOURCES = {
    "grad": lambda f, **s: gt.grad(f, **s)(X),
    "value_and_grad": lambda f, **s: gt.value_and_grad(f, **s)(X),
    "vjp": lambda f, **s: gt.vjp(f, X, **s)[1](1.0),
    "jvp": lambda f, **s: gt.jvp(f, X, gt.ones(2), **s)[1],
    "linearize": lambda f, **s: gt.linearize(f, X, **s)[1](X),
    "jacrev": lambda f, **s: gt.jacrev(f, **s)(X),
    "jacfwd": lambda f, **s: gt.jacfwd(f, **s)(X),
    "hessian": lambda f, **s: gt.hessian(f, **s)(X),
    "hvp": lambda f, **s: gt.hvp(f, X, gt.ones(2), **s),
}


def on_tape(f, ask="gradient", strict=False):
    with gt.GradientTape(strict=strict) as tape:
        tape.watch(X)
        y = f(X)
    return getattr(tape, ask)(y, X)


def by_accumulator(f, strict=False):
    with gt.ForwardAccumulator(X, gt.ones(2, dtype="float64"), strict=strict) as accumulator:
        y = f(X)
    return accumulator.jvp(y)


SOURCES["accumulator"] = by_accumulator
SOURCES["tape"] = lambda f, **s: on_tape(f, **s)
SOURCES["tape's jacobian"] = lambda f, **s: on_tape(f, "jacobian", **s)


@pytest.mark.parametrize("ask", SOURCES)
@pytest.mark.parametrize("name", LEAVES)
def test_a_value_that_comes_back_is_told_of(name, ask) -> None:
    def f(x):
        return x[0] * LEAVES[name](x) * x[1]

    with pytest.warns(BrokenPathWarning, match="was read by .* at .*test_values_that_leave"):
        SOURCES[ask](f)
    with pytest.raises(GradientError, match="was read by"):
        SOURCES[ask](f, strict=True)


@pytest.mark.parametrize("name", LEAVES)
def test_explain_names_the_line_that_reads(name) -> None:
    with gt.GradientTape() as tape:
        tape.watch(X)
        y = gt.sum(X) + LEAVES[name](X)
    text = tape.explain(y, X)
    assert text.startswith("Connected")
    assert "Other paths from the source end: a value that depends on it was read by" in text


@pytest.mark.parametrize("name", LEAVES)
def test_a_value_that_is_meant_to_leave_is_not_told_of(name) -> None:
    def f(x):
        return gt.sum(x * x) + LEAVES[name](gt.stop_gradient(x))

    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        for ask in ("grad", "jvp", "tape", "hessian"):
            SOURCES[ask](f)
            SOURCES[ask](f, strict=True)


def test_the_warning_is_given_once_for_each_line_and_says_what_to_write() -> None:
    def f(x):
        out = gt.sum(x)
        for _ in range(3):
            out = out * math.sin(x[0])
        return out

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        globals().pop("__warningregistry__", None)
        for _ in range(3):
            gt.grad(f)(X)
            on_tape(f)
    (told,) = caught
    assert told.category is BrokenPathWarning
    assert told.filename == __file__
    assert told.lineno == f.__code__.co_firstlineno + 3
    assert "math.sin(...)" in str(told.message)
    assert "use gradtape.sin" in str(told.message)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("np.array of a list", "gradtape.stack"),
        ("np.dot of a list", "gradtape.dot"),
        ("np.full", "gradtape.full"),
        ("out[k] = x", "a = gradtape.writable(a)"),
        ("random numbers", "loc + scale * gradtape.random.normal"),
        ("np.float64", "compute with the tensor itself"),
        ("float", "compute with the tensor itself"),
    ],
)
def test_the_warning_says_what_to_write(name, advice) -> None:
    with pytest.warns(BrokenPathWarning) as caught:
        gt.grad(lambda x: gt.sum(x) + LEAVES[name](x))(X)
    assert advice in str(caught[0].message)


def test_the_warning_of_a_librarys_function_says_that_the_library_reads() -> None:
    def f(x: Any) -> Any:
        return gt.sum(x) + statistics.fmean(x)

    with pytest.warns(
        BrokenPathWarning, match=r"\(statistics reads the values of tensors"
    ) as caught:
        gt.grad(f)(X)
    assert "gradtape.custom_gradient" in str(caught[0].message)


@pytest.mark.parametrize(("library", "advice"), [("pandas", "a data frame"), ("xarray", "xarray")])
def test_the_warning_of_a_librarys_container_names_no_array(library: str, advice: str) -> None:
    module = pytest.importorskip(library)
    make = module.Series if library == "pandas" else module.DataArray

    def f(x: Any) -> Any:
        kept = make(np.zeros(3))
        kept[0] = x[0]
        return gt.sum(x) * kept.sum().item()

    with pytest.warns(BrokenPathWarning) as caught:
        gt.grad(f)(X)
    assert f"({advice}" in str(caught[0].message)
    assert "writable" not in str(caught[0].message)


def test_a_variable_that_is_read_before_it_is_watched() -> None:
    v = gt.Variable(1.5)
    with gt.GradientTape() as tape:
        y = math.sin(v) * v
    with pytest.warns(BrokenPathWarning, match="math.sin"):
        tape.gradient(y, v)


def test_sources_that_were_not_read_are_not_told_of() -> None:
    y = gt.constant(3.5)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([X, y])
        z = gt.sum(X * y) + math.sin(X[0])
    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        tape.gradient(z, y)
    with pytest.warns(BrokenPathWarning):
        tape.gradient(z, [X, y])


def test_a_target_that_is_a_value_that_was_read() -> None:
    with gt.GradientTape() as tape:
        tape.watch(X)
        y, z = gt.sum(X * X), gt.constant(float(X[0]) * 2)
    with pytest.warns(BrokenPathWarning, match="float"):
        tape.gradient([y, z], X)


def test_inside_vmap_a_read_is_an_error() -> None:
    with pytest.raises(gt.errors.TraceError):
        gt.vmap(gt.grad(lambda x: x * math.sin(x)))(X)


# -- logs ------------------------------------------------------------------------------------------

LOG = logging.getLogger("test")
SCALE = 0.375
HISTORY: list = []


class Weighted:
    def __init__(self):
        self.weight = 0.625

    def __call__(self, x, share=0.85):
        loss = gt.sum(x * x)
        HISTORY.append(loss.item())
        return loss * self.weight + gt.sum(x) * share


def scaled(x, share=0.35):
    return x * share * SCALE


def then(look):
    """Return a function that looks at a loss, and goes on with numbers and arrays that it had."""

    def f(x):
        loss = gt.sum(x * x)
        weight, data = 0.15, np.array([0.2, 0.3])
        look(loss)
        return loss * weight + gt.sum(scaled(x) * data) * 0.5 + 2 * gt.mean(gt.nn.gelu(x) / 3.0)

    return f


def two_losses(look):
    """Return a function like a step of a GAN: batches and noise arrive between two losses."""

    def f(x):
        real = np.random.default_rng(0).normal(size=(4, 2))
        first = gt.mean((real - x) ** 2)
        look(first)
        noise = np.random.default_rng(1).normal(size=(4, 2))
        labels = gt.constant(np.ones((4, 2)))
        second = gt.mean((noise * x - labels) ** 2) + gt.sum(x * gt.random.normal((2,)))
        return first * 0.5 + second

    return f


def added(loss):
    total = 0.0
    total += loss.item()


def kept(loss):
    logs = {}
    logs["loss"] = float(loss)
    Parts.last = loss.item()
    if float(loss) > 100:
        raise ValueError


def positioned(loss):
    HISTORY.append([2, float(loss)])
    LOG.info("loss %s", round(float(loss), 3))
    show(loss=loss.item())


def show(**values):
    print(values)


LOOKS = {
    "calls": positioned,
    "a format of float": lambda loss: f"{float(loss):.3f} {loss.item()}",
    "an old format of float": lambda loss: "%.3f" % float(loss),  # noqa: UP031
    "isnan of float": lambda loss: math.isnan(float(loss)) or np.isnan(np.asarray(loss)),
    "print(float)": lambda loss: print(float(loss)),
    "print": print,
    "append(item)": lambda loss: HISTORY.append(loss.item()),
    "a format": lambda loss: f"{loss:.3f} {loss!r} {loss}",
    "an old format": lambda loss: "%.3f" % loss,  # noqa: UP031
    "str.format": "{:.2f}".format,
    "logging": lambda loss: LOG.warning("%.4f", loss),
    "math.isnan": lambda loss: math.isnan(loss) or math.isinf(loss),
    "math.isfinite": math.isfinite,
    "np.isfinite": lambda loss: np.isfinite([loss]).all(),
    "an assertion": lambda loss: np.testing.assert_allclose(loss, loss),
    "np.allclose": lambda loss: np.allclose([loss], [1.0]),
    "print(item, ...)": lambda loss: print("loss", 2 * loss.item(), end=""),
    "a sum": added,
    "a dictionary's item": kept,
    "the best": lambda loss: HISTORY.append(min(float(loss), 2.0)),
    "a dictionary": lambda loss: {"loss": float(loss), "twice": 2 * loss.item()},
    "numpy()": lambda loss: HISTORY.append(loss.numpy() * 3),
    "a condition": lambda loss: bool(loss > 1.0) or int(loss) > 3,
    "tolist": lambda loss: HISTORY.append(loss.tolist()),
}


@pytest.mark.parametrize("ask", SOURCES)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("step", [then, two_losses], ids=["one loss", "two losses"])
def test_a_log_is_not_told_of(look, step, ask) -> None:
    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        SOURCES[ask](step(LOOKS[look]))


class Settings:
    def __init__(self, rate=None):
        self.inner = Settings(0.01) if rate is None else rate


SETTINGS = {"optimizer": [{"schedule": [Settings()]}]}


def then_computes(look):
    """Return a function that looks at a loss, and goes on with numbers that it makes."""

    def f(x):
        loss = gt.sum(x * x)
        look(loss)
        time, spread = 0.0, 0.37
        for i in range(4):
            time += 0.1
            loss = loss * time + loss * (i / 5) + loss * np.exp(-0.3 * i)
        loss = loss + np.sum(x * np.pi) * math.e - np.log(2 * np.pi * spread**2) * x[0]
        rate = SETTINGS["optimizer"][0]["schedule"][0].inner.inner
        return loss * RNG.normal() * rate + gt.sum(x * RNG.normal(size=2))

    return f


def read_first(loss):
    value = loss.item()
    HISTORY.append(value)
    print(value)


def the_best(loss):
    best = 1e9
    if float(loss) < best:
        best = float(loss)
    assert best < 1e9


def small(loss):
    if float(loss) < 1e-12:
        return
    assert float(loss) > 0
    HISTORY.append(abs(float(loss) - float(2 * loss)) < 1e-6)


def attribute(loss):
    Parts.last = float(loss)
    Parts.seen = value = loss.item()
    HISTORY.append((0, value))


LOGS = {
    "a list elsewhere": lambda loss: HISTORY.append(float(loss)),
    "a complex number": lambda loss: HISTORY.append(complex(loss)),
    "print": lambda loss: print(float(loss)),
    "an attribute": attribute,
    "a variable": read_first,
    "a comparison": the_best,
    "a tolerance": small,
}


@pytest.mark.parametrize("ask", SOURCES)
@pytest.mark.parametrize("look", LOGS)
def test_new_numbers_after_a_log_are_not_told_of(look, ask) -> None:
    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        SOURCES[ask](then_computes(LOGS[look]))


def test_constants_of_modules_are_known_to_strict_tapes() -> None:
    def f(x):
        HISTORY.append(float(x[0]))
        return np.sum(x * np.pi) * math.e + 0.5 * x[0]

    gt.grad(f, strict=True)(X)


def test_a_result_that_is_a_log() -> None:
    def f(x):
        loss = gt.sum(x * x) * np.sqrt(7.0)
        return loss, loss.item()

    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        gt.value_and_grad(f, has_aux=True)(X)


def test_a_complex_log_before_a_real_array() -> None:
    def f(z):
        HISTORY.append(complex(z[0]))
        return np.sum(np.abs(z) ** 2 * RNG.normal(size=2))

    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        gt.grad(f)(X.astype("complex128"))


def test_an_array_that_is_only_stored_is_not_told_of() -> None:
    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        gt.grad(then(np.asarray))(X)
        gt.grad(Weighted())(X)


def test_two_targets_of_one_tape() -> None:
    w, v = gt.Variable([0.5, 0.25]), gt.Variable([1.5, 0.75])
    for _ in range(2):
        with gt.GradientTape(persistent=True) as tape:
            made = RNG.normal(size=(4, 2)) * w
            first = gt.mean((made * v - RNG.normal(size=(4, 2))) ** 2)
            print(float(first), first.item(), f"{first:.2f}")
            second = gt.mean((made * v * 0.3 + RNG.normal(size=(4, 2))) ** 2)
            HISTORY.append(second.item())
        with warnings.catch_warnings(action="error", category=BrokenPathWarning):
            one, two = tape.gradient(first, v), tape.gradient(second, w)
        v.assign_sub(0.1 * one)
        w.assign_sub(0.1 * two)


def test_fit_with_callbacks() -> None:
    model = layers.Sequential([layers.Dense(3, activation="tanh"), layers.Dense(1)])
    seen = []

    def loss(y, p):
        value = gt.mean((y - p) ** 2)
        seen.append(float(value))
        return value + 0.5 * gt.mean(abs(p))

    x = RNG.normal(size=(8, 2)).astype("float32")
    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        training.fit(
            model,
            (x, x[:, :1]),
            loss=loss,
            epochs=2,
            compile=False,
            verbose=0,
            callbacks=[
                training.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(logs["loss"]))
            ],
        )
    assert len(seen) > 2


def test_a_custom_gradient_may_use_numpy() -> None:
    @gt.custom_gradient
    def root(x):
        y = gt.constant(math.sqrt(x), dtype="float64")
        return y, lambda g: g / (2 * y)

    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        slope = gt.grad(lambda x: root(x) + x)(gt.constant(np.float64(4.0)))
    assert slope.item() == 1.25


# -- lists of tensors ------------------------------------------------------------------------------

#: Functions given lists that hold tensors, through which gradients pass.
LISTS = {
    "np.sum": lambda x: np.sum([x[0], x[1] * x[0]]),
    "np.sum of a tuple": lambda x: np.sum((x[0], 2.0, x[1])),
    "np.sum of nested lists": lambda x: np.sum([[x[0], x[1]], [x[0] * x[1], 4.0]]),
    "np.sum of vectors": lambda x: np.sum([x, x * x]),
    "np.prod": lambda x: np.prod([x[0], x[1], 3]),
    "np.linalg.norm": lambda x: np.linalg.norm([x[0], x[1]]),
    "np.stack": lambda x: np.sum(np.stack([x[0], x[1] * x[0]])),
    "np.concatenate": lambda x: np.sum(np.concatenate([x, x * x])),
    "beside a tensor": lambda x: np.dot(x, [x[0], x[1]]),
    "np.einsum": lambda x: np.einsum("i,i", x, [x[1], 2.0]),
    "objects": lambda x: np.sum(np.array([x[0], x[1] * x[0]], dtype=object) * 2),
    "gt.sum": lambda x: gt.sum([x[0], x[1] * x[0], 2.0]),
    "gt.sum of nested lists": lambda x: gt.sum([[x[0], x[1]], (x[0] * x[1], 4.0)]),
    "gt.sum of objects": lambda x: gt.sum(np.array([x[0], x[1] * x[0]], dtype=object)),
    "gt.dot": lambda x: gt.dot([x[0], x[1]], [1.5, 2.5]),
    "gt.linalg.det": lambda x: gt.linalg.det([[x[0], x[1]], [x[1] * x[0], 4.0]]),
    "gt.mean": lambda x: gt.mean([x[0], x[1] * x[0]]),
    "an operator": lambda x: gt.sum(x * [x[1], 2.0]),
}


@pytest.mark.parametrize("name", LISTS)
def test_gradients_pass_through_lists_of_tensors(name) -> None:
    f, step = LISTS[name], 1e-6

    def beside(x):
        return f(x) + gt.sum(x)

    at = np.asarray(X)
    rows = np.eye(2) * step
    near = [(beside(gt.constant(at + row)), beside(gt.constant(at - row))) for row in rows]
    expected = [float(up - down) / (2 * step) for up, down in near]
    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        for strict in (False, True):
            np.testing.assert_allclose(gt.grad(beside, strict=strict)(X), expected, rtol=1e-6)
            np.testing.assert_allclose(gt.jacfwd(beside, strict=strict)(X), expected, rtol=1e-6)
    assert np.ndim(f(X)) == 0


def by_tape(f):
    def gradient(x):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return gradient


@pytest.mark.parametrize("derivative", [gt.grad, gt.jacrev, gt.jacfwd, by_tape])
def test_pythons_round_is_told_of_unless_it_is_only_shown(derivative) -> None:
    x = gt.constant(np.array([1.25, 2.5]))
    with pytest.warns(BrokenPathWarning, match=r"round\(\) has derivative zero"):
        derivative(lambda x: gt.sum(x) + round(gt.sum(x), 2))(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        derivative(lambda x: (str(round(gt.sum(x), 2)), gt.sum(x) + gt.round(gt.sum(x)))[1])(x)
