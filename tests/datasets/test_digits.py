"""The digits: what is loaded, and that the file names its source and licence."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import gradtape as gt
from gradtape.datasets import load_digits, loading


def test_shapes_dtypes_and_ranges() -> None:
    (x_train, y_train), (x_test, y_test) = load_digits()
    assert x_train.shape == (1437, 64)
    assert y_train.shape == (1437,)
    assert x_test.shape == (360, 64)
    assert y_test.shape == (360,)
    for x in (x_train, x_test):
        assert x.dtype == np.float32
        assert x.min() == 0
        assert x.max() == 1
        assert np.array_equal(x * 16, np.round(x * 16))
    for y in (y_train, y_test):
        assert y.dtype == np.int64
        assert set(y.tolist()) == set(range(10))


def test_the_split_holds_every_image_once() -> None:
    (x_train, y_train), (x_test, y_test) = load_digits()
    with h5py.File(loading.FILE) as file:
        images, labels = file["images"][()].reshape(-1, 64), file["labels"][()]
    given = np.column_stack(
        [np.concatenate([x_train, x_test]) * 16, np.concatenate([y_train, y_test])]
    )
    stored = np.column_stack([images, labels])
    assert np.array_equal(np.unique(given, axis=0), np.unique(stored, axis=0))
    assert len(given) == len(stored) == 1797


def test_the_split_is_fixed_and_even() -> None:
    (_, y_train), (_, y_test) = load_digits()
    assert y_test[:10].tolist() == load_digits()[1][1][:10].tolist()
    for y in (y_train, y_test):
        share = np.bincount(y) / len(y)
        assert share.min() > 0.07
        assert share.max() < 0.14


def test_the_caller_may_change_the_arrays() -> None:
    (x, _), _ = load_digits()
    x[:] = 5
    assert load_digits()[0][0].max() == 1


def test_the_file_names_source_licence_and_citation() -> None:
    with h5py.File(loading.FILE) as file:
        attributes = dict(file.attrs)
        assert file["images"].compression == "gzip"
    assert "doi.org/10.24432/C50P49" in attributes["source"]
    assert attributes["licence"].startswith("CC BY 4.0")
    assert "Alpaydin" in attributes["citation"]
    assert (loading.FILE.parent / "README.md").is_file()
    assert loading.FILE.stat().st_size < 100_000


def test_reachable_from_the_face_of_the_package() -> None:
    assert gt.datasets.load_digits is load_digits


def test_a_missing_file_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "FILE", Path("nowhere") / "digits.h5")
    with pytest.raises(FileNotFoundError, match="install gradtape again"):
        load_digits()
