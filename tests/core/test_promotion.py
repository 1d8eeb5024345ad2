"""Dtypes: NumPy 2's promotion for every pair, eager and traced; gradients in the source's dtype."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

pytestmark = pytest.mark.filterwarnings("ignore")
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128"
).split()
FLOATING = ["float16", "float32", "float64", "complex64", "complex128"]
SCALARS = [True, 2, 1.5, 1.5j]
PAIRS = list(itertools.product(DTYPES, DTYPES))
BESIDE = list(itertools.product(DTYPES, range(len(SCALARS))))

# Ops whose result has exactly the dtype to which their operands promote.
PROMOTING = ["add", "multiply", "maximum", "minimum", "fmax", "fmin"]
BINARY = [
    *PROMOTING,
    *"subtract divide floor_divide remainder fmod power float_power arctan2 hypot".split(),
    *"copysign logaddexp logaddexp2 heaviside nextafter equal not_equal less less_equal".split(),
    *"greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or".split(),
    *"bitwise_xor bitwise_left_shift bitwise_right_shift".split(),
]
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "**": lambda x, y: x**y,
    "<": lambda x, y: x < y,
    "==": lambda x, y: x == y,
    "&": lambda x, y: x & y,
    "<<": lambda x, y: x << y,
}
JOINT: dict[str, Callable[[Any, Any, Any], Any]] = {
    "where": lambda xp, x, y: xp.where(xp.isfinite(x), x, y),
    "concatenate": lambda xp, x, y: xp.concatenate([x, y]),
    "stack": lambda xp, x, y: xp.stack([x, y]),
    "matmul": lambda xp, x, y: xp.matmul(x, y),
    "dot": lambda xp, x, y: xp.dot(x, y),
    "vdot": lambda xp, x, y: xp.vdot(x, y),
    "inner": lambda xp, x, y: xp.inner(x, y),
    "outer": lambda xp, x, y: xp.outer(x, y),
    "tensordot": lambda xp, x, y: xp.tensordot(x, y, axes=1),
    "einsum": lambda xp, x, y: xp.einsum("i,i->", x, y),
    "kron": lambda xp, x, y: xp.kron(x, y),
}


def array(dtype: str) -> Any:
    return np.ones(2, dtype)


def dtype_of(call: Callable[..., Any], *args: Any) -> np.dtype[Any] | None:
    """Return the dtype of a result, None where there is none for such operands."""
    try:
        return np.dtype(call(*args).dtype)
    except TypeError:
        return None


def numpys(name: str) -> Callable[[Any, Any], Any]:
    return OPERATORS.get(name) or getattr(np, name)


def ours(name: str) -> Callable[[Any, Any], Any]:
    return OPERATORS.get(name) or getattr(gt, name)


def traced(call: Callable[[Any, Any], Any], cases: list[tuple[Any, Any]]) -> list[Any]:
    """Return the dtypes in a trace of all cases; an operand is an array or a Python number."""
    found: list[Any] = []
    arrays = [x for case in cases for x in case if isinstance(x, np.ndarray)]

    @gt.function
    def program(tensors: list[Any]) -> list[Any]:
        given, results = iter(tensors), []
        for case in cases:
            x, y = (next(given) if isinstance(x, np.ndarray) else x for x in case)
            found.append(dtype_of(call, x, y))
            if found[-1] is not None:
                results.append(call(x, y))
        return results

    ran = program([gt.constant(x) for x in arrays])
    assert [y.dtype for y in ran] == [dtype for dtype in found if dtype is not None]
    return found


def check(name: str, call: Any, reference: Any, cases: list[tuple[Any, Any]]) -> None:
    expected = [dtype_of(reference, x, y) for x, y in cases]
    tensors = [
        tuple(gt.constant(x) if isinstance(x, np.ndarray) else x for x in case) for case in cases
    ]
    eager = [dtype_of(call, x, y) for x, y in tensors]
    assert any(dtype is not None for dtype in expected), name
    for found in (eager, traced(call, cases)):
        wrong = {
            f"{_name(x)}, {_name(y)}": f"{got}, NumPy: {want}"
            for (x, y), got, want in zip(cases, found, expected, strict=True)
            if got != want
        }
        assert not wrong


def _name(x: Any) -> str:
    return str(x.dtype) if isinstance(x, np.ndarray) else repr(x)


@pytest.mark.parametrize("name", [*BINARY, *OPERATORS])
def test_every_pair_of_dtypes(name: str) -> None:
    check(name, ours(name), numpys(name), [(array(a), array(b)) for a, b in PAIRS])


@pytest.mark.parametrize("name", [*BINARY, *OPERATORS])
def test_python_numbers_are_weak_on_either_side(name: str) -> None:
    cases = [(array(a), SCALARS[i]) for a, i in BESIDE]
    if name == "power":  # NumPy's operator squares booleans as int8, its function as int64
        cases = [case for case in cases if (case[0].dtype, case[1]) != ("bool", 2)]
    check(name, ours(name), numpys(name), [*cases, *((y, x) for x, y in cases)])


@pytest.mark.parametrize("name", JOINT)
def test_every_pair_in_functions_of_two_arrays(name: str) -> None:
    def call(x: Any, y: Any) -> Any:
        return JOINT[name](gt, x, y)

    def reference(x: Any, y: Any) -> Any:
        return np.asarray(JOINT[name](np, x, y))

    check(name, call, reference, [(array(a), array(b)) for a, b in PAIRS])


@pytest.mark.parametrize("name", PROMOTING)
def test_the_result_type_is_numpys(name: str) -> None:
    for a, b in PAIRS:
        x, y = gt.constant(array(a)), gt.constant(array(b))
        assert ours(name)(x, y).dtype == np.result_type(a, b) == np.result_type(x, y)
    for a, i in BESIDE:
        x = gt.constant(array(a))
        assert ours(name)(x, SCALARS[i]).dtype == np.result_type(array(a), SCALARS[i])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64"])
def test_a_python_integer_that_does_not_fit_is_an_error(dtype: str) -> None:
    value = -1 if dtype == "uint64" else 300
    with pytest.raises(OverflowError):
        np.add(array(dtype), value)
    with pytest.raises(OverflowError):
        gt.constant(array(dtype)) + value


def test_numpy_scalars_and_arrays_without_axes_are_not_weak() -> None:
    x = gt.constant(array("float32"))
    for strong in (np.float64(2.0), np.array(2.0), gt.constant(2.0, dtype="float64")):
        assert (x * strong).dtype == (strong * x).dtype == np.float64
    assert (x * np.float16(2.0)).dtype == np.float32


# -- gradients -------------------------------------------------------------------------------------

DIFFERENTIABLE = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "where": lambda x, y: np.where(np.isfinite(x), x, y) + y,
    "matmul": np.matmul,
    "concatenate": lambda x, y: np.concatenate([x, y]),
    "einsum": lambda x, y: np.einsum("i,j->ij", x, y),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_come_back_in_the_dtype_of_the_source(name: str) -> None:
    call = DIFFERENTIABLE[name]
    for a, b in itertools.product(["int32", *FLOATING], repeat=2):
        x, y = gt.constant(array(a)), gt.constant(array(b))
        for run in (call, gt.function(lambda x, y: call(x, y))):
            with gt.GradientTape() as tape:
                tape.watch([x, y])
                z = run(x, y)
            for source, gradient in zip((x, y), tape.gradient(z, [x, y]), strict=True):
                if source.dtype.kind == "i":
                    assert gradient is None, (a, b)
                else:
                    assert gradient.dtype == source.dtype, (a, b)
                    assert gradient.shape == source.shape


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("name", ["sum", "mean", "std", "prod", "cumsum", "exp", "sqrt", "square"])
def test_gradients_of_functions_of_one_array(name: str, dtype: str) -> None:
    x = gt.constant(np.array([1.0, 2.0], dtype))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = getattr(np, name)(x * 1.5)
    assert y.dtype == getattr(np, name)(np.array([1.0, 2.0], dtype)).dtype
    assert tape.gradient(y, x).dtype == dtype


@pytest.mark.parametrize("path", ["int64", "bool", "uint8"])
def test_a_path_through_integers_gives_none(path: str) -> None:
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x.astype(path).astype("float32") * 2.0
        z = y + x
    assert tape.gradient(y, x) is None
    np.testing.assert_array_equal(tape.gradient(z, x).numpy(), [1.0, 1.0])
    zero = tape.gradient(y, x, unconnected_gradients="zero")
    assert zero.dtype == np.float32


@pytest.mark.parametrize(
    ("call", "at", "expected"),
    [
        (lambda z: z * z, 1 + 2j, 2 - 4j),
        (np.exp, 0.5 + 1j, np.exp(0.5 - 1j)),
        (np.real, 1 + 2j, 1),
        (np.imag, 1 + 2j, 1j),
        (np.abs, 3 + 4j, 0.6 + 0.8j),
        (np.angle, 3 + 4j, -0.16 + 0.12j),
        (np.conj, 1 + 2j, 1),
        (lambda z: np.real(z * np.conj(z)), 1 + 2j, 2 + 4j),
    ],
)
def test_complex_gradients_follow_tensorflow(call: Any, at: complex, expected: complex) -> None:
    z = gt.constant(at, dtype="complex128")
    for run in (call, gt.function(lambda z: call(z))):
        with gt.GradientTape() as tape:
            tape.watch(z)
            y = run(z)
        gradient = tape.gradient(y, z)
        assert gradient.dtype == np.complex128
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-12)


def test_a_real_source_beside_complex_numbers_gets_the_real_part() -> None:
    x = gt.constant(2.0, dtype="float32")
    z = gt.constant(1 + 3j, dtype="complex128")
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * z
    gradient = tape.gradient(y, x)
    assert y.dtype == np.complex128
    assert gradient.dtype == np.float32
    assert gradient.item() == 1.0
