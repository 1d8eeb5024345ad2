"""What notebooks show: tensors, variables and modules as HTML, and the table of a module."""

from __future__ import annotations

import copy
import pickle
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

L = gt.layers


def cells(shown: Any) -> list[list[str]]:
    """Return the texts of a table's cells; the HTML is read as XML, so it is well formed."""
    tree = ET.fromstring(f"<div>{shown}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def test_values_stand_in_a_table_of_rows_and_columns() -> None:
    shown = gt.constant([[1.0, 2.5], [3.0, 1e-9]])._repr_html_()
    assert "shape=(2, 2) dtype=float32" in shown
    assert cells(shown) == [["", "0", "1"], ["0", "1", "2.5"], ["1", "3", "1e-09"]]
    assert cells(gt.Variable([1, 2], name="n")._repr_html_()) == [["", "0", "1"], ["", "1", "2"]]


def test_of_many_values_the_first_and_last_are_shown() -> None:
    rows = cells(gt.zeros((30, 11))._repr_html_())
    assert [row[0] for row in rows] == ["", *"01234", "…", *map(str, range(25, 30))]
    assert {len(row) for row in rows} == {12}


@pytest.mark.parametrize(
    "value", [3.0, np.zeros((2, 2, 2)), np.zeros((0, 3)), [True, False], [1 + 2j]]
)
def test_other_values_are_shown_too(value: Any) -> None:
    cells(gt.constant(value)._repr_html_())


def test_a_tensor_without_a_value_is_named() -> None:
    assert "&lt;Tensor placeholder x" in gt.Input((4,), name="x")._repr_html_()
    seen = []
    gt.function(lambda x: seen.append(x._repr_html_()) or x)(gt.ones(3))
    assert cells(seen[0]) == []


def nested() -> Any:
    inner = L.Sequential([L.Dense(4), L.Dense(2)])
    return L.Sequential([L.Dense(8), L.Dropout(0.5), inner])


def test_a_summary_sets_in_what_is_inside_and_counts_it_there() -> None:
    model = nested()
    model(gt.ones((2, 3)), training=True)
    assert model.summary().split("\n") == [
        "Sequential 'sequential'",
        "Layer                        Output shape  Parameters",
        "-----------------------------------------------------",
        "layers/0 (Dense)             (?, 8)                32",
        "layers/1 (Dropout)           (?, 8)                 0",
        "layers/2 (Sequential)        (?, 2)                46",
        "  layers/2/layers/0 (Dense)  (?, 4)                36",
        "  layers/2/layers/1 (Dense)  (?, 2)                10",
        "-----------------------------------------------------",
        "Parameters: 78 (78 trainable)",
    ]
    assert model.count_params() == 78


def test_before_the_first_call_parameters_are_not_known() -> None:
    lines = nested().summary().split("\n")
    assert lines[3].split() == ["layers/0", "(Dense)", "-", "?"]
    assert lines[-1] == "Parameters: 0 (0 trainable), before the first call"


def test_a_shared_layer_is_counted_once() -> None:
    dense = L.Dense(4)
    model = L.Sequential([dense, L.Sequential([dense])])
    model(gt.ones((2, 4)))
    lines = model.summary().split("\n")
    assert [line.split()[-1] for line in lines[3:6]] == ["20", "0", "shared"]
    assert lines[-1] == "Parameters: 20 (20 trainable)"


def test_several_outputs_have_several_shapes() -> None:
    x = gt.Input((5, 4))
    states = L.LSTM(3, return_state=True)(x)
    model = L.Sequential([gt.Model(x, [states[0], L.Flatten()(x)])])
    model(gt.ones((2, 5, 4)))
    assert "(?, 3), (?, 20)" in model.summary()
    assert "(?, 3), (?, 3), (?, 3)" in model.summary()


def test_a_summary_in_html_says_the_same() -> None:
    model = nested()
    model(gt.ones((2, 3)))
    text = [line.split() for line in model.summary().split("\n")[3:8]]
    rows = cells(model.summary("html"))[1:-1]
    assert [" ".join(row).split() for row in rows] == text
    assert model._repr_html_() == model.summary(form="html")
    with pytest.raises(ValueError, match="form must be 'text' or 'html'"):
        model.summary("pdf")


def test_names_cannot_write_html() -> None:
    class Holder(gt.Module):
        pass

    holder = Holder()
    holder.parts = {"<b>": L.Dense(1)}
    assert "<b>" not in holder.summary("html")
    assert "parts/&lt;b&gt;" in holder.summary("html")


def test_a_summary_fits_a_terminal_and_says_the_names_that_were_given() -> None:
    inner = gt.layers.Sequential([gt.layers.Dense(2, name="scores")], name="head")
    for depth in range(8):
        inner = gt.layers.Sequential([inner], name=f"part_{depth}")
    inner(gt.ones((1, 2)))
    lines = inner.summary().splitlines()
    assert max(map(len, lines)) <= 80
    assert "(Sequential 'part_6')" in lines[3]
    assert "(Dense 'scores')" in lines[-3]
    assert "Dense 'dense'" not in gt.layers.Sequential([gt.layers.Dense(2)]).summary()


# -- what has lines is shown in lines --------------------------------------------------------------


def test_results_are_shown_as_they_are_printed(tmp_path: Path) -> None:
    model = nested()
    model(gt.ones((2, 3)))
    one, two = str(tmp_path / "one.h5"), str(tmp_path / "two.h5")
    gt.save(model, one)
    model.variables[0].assign(model.variables[0] + 1.0)
    gt.save(model, two)
    found = gt.saving.inspect(one)
    texts = [found, gt.saving.verify(one), gt.saving.diff(one, two), gt.load_weights(one, model)]
    for result in texts:
        assert str(result) == repr(result) == result.table()
    manager = gt.training.CheckpointManager(gt.training.Checkpoint(model=model), str(tmp_path))
    double = gt.function(lambda x: 2.0 * x)
    for text in (
        model.summary(),
        gt.saving.inspect_text(one),
        found.graph_text(f"{model.name}.__call__"),
        double.explain(gt.ones(2)),
        manager.summary(),
    ):
        assert isinstance(text, str)
        assert repr(text) == str(text)
    assert copy.deepcopy(model.summary()) == pickle.loads(pickle.dumps(model.summary()))
