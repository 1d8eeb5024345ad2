"""Whose names and axes arrays have: the model's own paths come first, and nothing is guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Dense, Sequential
from gradtape.saving.weights.safetensors import write_tensors

SQUARE = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
ONES = np.ones(2, "float32")


class Gate(gt.Module):
    """A module with a variable that has the name of PyTorch's matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = Dense(2, use_bias=False)
        self.weight = gt.Variable(ONES)

    def __call__(self, x: Any) -> Any:
        return self.dense(x) * self.weight


class Matrix(gt.Module):
    """A module whose attribute has the same name in PyTorch, with other axes."""

    names_elsewhere: ClassVar[Any] = {"pytorch": {"weight": ("weight", (1, 0))}}

    def __init__(self, outputs: int = 2) -> None:
        super().__init__()
        self.weight = gt.Variable(np.zeros((2, outputs), "float32"))


def loaded(model: Any, arrays: dict[str, Any], metadata: Any = None, **options: Any) -> Any:
    """Return the report of arrays in memory, or in a safetensors file with metadata."""
    if metadata is None:
        return model.load_weights(arrays, **options)
    write_tensors("arrays.safetensors", arrays, metadata)
    return model.load_weights("arrays.safetensors", **options)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}, {"format": "gradtape"}])
@pytest.mark.parametrize("built", [True, False])
def test_a_path_of_the_model_keeps_the_axes_of_the_file(metadata: Any, built: bool) -> None:
    model = Gate()
    if built:
        model(SQUARE)
    loaded(model, {"dense/kernel": SQUARE, "weight": 2 * ONES}, metadata)
    assert model.dense.kernel.tolist() == SQUARE.tolist()
    assert model.weight.tolist() == [2.0, 2.0]


@pytest.mark.needs("weights")
@pytest.mark.parametrize(
    ("names", "mapping", "transposed"),
    [
        (("dense.weight", "weight"), None, True),
        (("dense.kernel", "weight"), None, False),
        (("fc.weight", "weight"), {"fc.weight": "dense/kernel"}, True),
        (("fc.weight", "weight"), {"fc": "dense"}, True),
        (("fc.weight", "weight"), {"fc.weight": ("dense/kernel", (0, 1))}, False),
        (("old/kernel", "weight"), {"old": "dense"}, False),
        (("W1", "weight"), {"W1": "dense/kernel"}, False),
    ],
)
def test_other_names_tell_whose_axes_these_are(names: Any, mapping: Any, transposed: bool) -> None:
    model = Gate()
    report = loaded(model, dict(zip(names, (SQUARE, ONES))), mapping=mapping)
    assert model.dense.kernel.tolist() == (SQUARE.T if transposed else SQUARE).tolist()
    explicit = isinstance((mapping or {}).get("fc.weight"), tuple)
    assert report.layout == ("pytorch" if transposed and not explicit else "gradtape")


@pytest.mark.needs("weights")
def test_names_of_both_kinds_each_keep_their_axes() -> None:
    model = Sequential([Dense(2, use_bias=False), Dense(2, use_bias=False)])
    loaded(model, {"layers/0/kernel": SQUARE, "1.weight": SQUARE})
    assert model.layers[0].kernel.tolist() == SQUARE.tolist()
    assert model.layers[1].kernel.tolist() == SQUARE.T.tolist()


@pytest.mark.needs("weights")
@pytest.mark.parametrize("layout", ["gradtape", "pytorch"])
def test_a_name_of_both_with_other_axes_needs_a_word(layout: str) -> None:
    model = Matrix()
    with pytest.raises(ValueError, match=r"'weight' is a path of the model, and also PyTorch's .*"):
        loaded(model, {"weight": SQUARE})
    assert model.weight.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    expected = SQUARE.T.tolist() if layout == "pytorch" else SQUARE.tolist()
    loaded(model, {"weight": SQUARE}, layout=layout)
    assert model.weight.tolist() == expected
    loaded(model, {"weight": SQUARE}, {"format": "pt" if layout == "pytorch" else layout})
    assert model.weight.tolist() == expected


@pytest.mark.needs("weights")
def test_shapes_tell_where_names_do_not() -> None:
    long = np.arange(6, dtype="float32").reshape(2, 3)
    model = Matrix(outputs=3)
    for array in (long, long.T):
        loaded(model, {"weight": array})
        assert model.weight.tolist() == long.tolist()


def test_a_file_of_ours_with_such_a_name_is_read_as_written() -> None:
    model = Matrix()
    model.weight.assign(SQUARE)
    for path in ("m.h5", "m.safetensors"):
        gt.save_weights(model, path)
        other = Matrix()
        other.load_weights(path)
        assert other.weight.tolist() == SQUARE.tolist()


@pytest.mark.parametrize("size", [640, 896, 1152, 1408])
def test_a_header_whose_length_begins_like_a_pickle_is_read(size: int) -> None:
    model = gt.Module()
    for padding in range(0, 8 * size, 8):
        model.held = {"x" * (padding + 1): gt.Variable(1.0)}
        gt.save_weights(model, "w.safetensors")
        with open("w.safetensors", "rb") as file:
            length = int.from_bytes(file.read(8), "little")
        if length == size:
            assert model.load_weights("w.safetensors").ok
            return
    raise AssertionError(length)


class Stubborn:
    """As PyTorch's tensors of types that NumPy lacks."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Got unsupported ScalarType BFloat16")


def test_an_array_that_numpy_cannot_hold_is_named() -> None:
    with pytest.raises(TypeError, match=r"load_weights: 'weight' \(Stubborn\) cannot .*BFloat16"):
        Dense(2).load_weights({"weight": Stubborn()})
