"""``bfloat16``, ``float8`` and ``int4``, which NumPy lacks: refused or widened, never as bits."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Dense

ml_dtypes = pytest.importorskip("ml_dtypes", reason="pip install ml_dtypes")

VALUES = np.array([[1.5, -2.25], [0.3, 4.0]], np.float32)
BIAS = np.array([0.5, 0.25], np.float32)
FLOATS = (
    "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e4m3b11fnuz "
    "float6_e2m3fn float4_e2m1fn"
).split()
INTEGERS = ["int4", "uint4", "int2"]


def small(name: str) -> Any:
    return np.abs(VALUES).astype(ml_dtypes.__dict__[name])


def layer() -> Dense:
    made = Dense(2)
    made(np.ones((1, 2), np.float32))
    return made


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_a_tensor_of_a_small_dtype_is_refused_with_the_dtype_that_holds_it(name: str) -> None:
    x = small(name)
    wide = "float32" if "float" in name else name.rstrip("124") + "8"
    message = rf"dtype {name}; convert it with \.astype\('{wide}'\), which holds all values"
    np.testing.assert_array_equal(x.astype(wide).astype(name), x)  # as the message says
    variable = gt.Variable(VALUES)
    for use in (gt.constant, gt.sin, gt.Variable, variable.assign, layer(), lambda x: variable + x):
        with pytest.raises(TypeError, match=message):
            use(x)
    with pytest.raises(TypeError, match=r"not dtype|tensors cannot have dtype"):
        gt.constant(VALUES, x.dtype)
    assert variable.dtype == "float32"


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_dtype_that_is_asked_for_is_that_of_the_values(name: str, dtype: str) -> None:
    x = small(name)
    made = gt.constant(x, dtype)
    assert made.dtype == dtype
    np.testing.assert_array_equal(made.numpy(), x.astype(dtype))


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_a_dictionary_of_weights_has_the_values(name: str) -> None:
    model, x = layer(), small(name)
    report = model.load_weights({"kernel": x, "bias": BIAS})
    assert model.kernel.dtype == "float32"
    np.testing.assert_array_equal(model.kernel.numpy(), x.astype(np.float32))
    assert report.cast == {"kernel": (name, "float32")}


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"])
def test_a_dictionary_of_jax_has_the_values(name: str) -> None:
    jnp = pytest.importorskip("jax.numpy", reason="pip install jax")
    model, x = layer(), jnp.asarray(small(name))
    model.load_weights({"kernel": x, "bias": jnp.asarray(BIAS)})
    np.testing.assert_array_equal(model.kernel.numpy(), np.asarray(x).astype(np.float32))
    with pytest.raises(TypeError, match=f"dtype {name}; convert it"):
        gt.constant(x)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_safetensors_file_has_the_values(name: str, tmp_path: Any) -> None:
    library = pytest.importorskip("safetensors.numpy", reason="pip install safetensors")
    path, model, x = tmp_path / "a.safetensors", layer(), small(name)
    library.save_file({"kernel": x, "bias": BIAS}, path)
    model.load_weights(path)
    np.testing.assert_array_equal(model.kernel.numpy(), x.astype(np.float32))
    assert gt.saving.read_weights(path)["kernel"].dtype == np.float32
    model.save_weights(path)
    np.testing.assert_array_equal(library.load_file(path)["kernel"], model.kernel.numpy())
    other = layer()
    other.load_weights(library.load_file(path))
    np.testing.assert_array_equal(other.kernel.numpy(), model.kernel.numpy())


def of_npz(x: Any) -> Any:
    """Return what NumPy's own file makes of an array: raw bytes."""
    file = io.BytesIO()
    np.savez(file, kernel=x, bias=BIAS)
    file.seek(0)
    return dict(np.load(file))


RAW = {
    "bfloat16": (lambda: of_npz(small("bfloat16")), r"\|V2; .*x\.view\(ml_dtypes\.bfloat16\)"),
    "float8": (lambda: of_npz(small("float8_e4m3fn")), r"\|V1; .*ml_dtypes\.float8_e4m3fn"),
    "void": (lambda: {"kernel": VALUES.view("V4"), "bias": BIAS}, r"\|V4; these are raw bytes"),
    "fields": (lambda: {"kernel": VALUES.view([("a", "f4")]), "bias": BIAS}, "stack its fields"),
    "objects": (lambda: {"kernel": VALUES.astype(object), "bias": BIAS}, "astype"),
}


@pytest.mark.parametrize("kind", RAW)
def test_raw_bytes_are_refused_and_the_weight_is_named(kind: str) -> None:
    make, message = RAW[kind]
    weights, model = make(), layer()
    before = model.kernel.numpy().copy()
    with pytest.raises(TypeError, match=f"load_weights: 'kernel' is not an array .*{message}"):
        model.load_weights(weights)
    with pytest.raises(TypeError, match=f"set_weights to variable 'kernel': .*{message}"):
        model.set_weights([weights["kernel"], BIAS])
    np.testing.assert_array_equal(model.kernel.numpy(), before)


@pytest.mark.parametrize("bad", [small("bfloat16")[0], np.ones(2, complex), ["a", "b"]])
def test_set_weights_changes_all_or_nothing(bad: Any) -> None:
    model = layer()
    before = model.kernel.numpy().copy()
    with pytest.raises(TypeError, match="variable 'bias'"):
        model.set_weights([VALUES, bad])
    np.testing.assert_array_equal(model.kernel.numpy(), before)


def test_small_floats_of_torch_say_how_to_convert_them() -> None:
    torch = pytest.importorskip("torch", reason="pip install torch")
    for dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        x = torch.tensor(VALUES).to(dtype)
        with pytest.raises(TypeError, match=rf"Tensor of dtype {dtype}: .*\.float\(\)"):
            gt.constant(x)
        model = layer()
        model.load_weights({"kernel": x, "bias": BIAS})
        np.testing.assert_array_equal(model.kernel.numpy(), x.float().numpy())
