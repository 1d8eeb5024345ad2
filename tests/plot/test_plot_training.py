"""Pictures of models and training: what is drawn, and what is refused."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.reports import svg

L = gt.layers


def figure() -> Any:
    return pytest.importorskip("matplotlib.figure", reason='pip install "gradtape[plot]"').Figure()


def texts(picture: Any) -> list[str]:
    """Return the texts of a picture; reading it as XML proves that it is well formed."""
    kind = "{http://www.w3.org/2000/svg}text"
    return ["".join(x.itertext()) for x in ET.fromstring(picture.svg).iter(kind)]


def two_heads() -> Any:
    x, z = gt.Input((8,), name="image"), gt.Input((3,), name="facts")
    shared = L.Dense(8, activation="relu", name="shared")
    inside = gt.Input((8,))
    head = gt.Model(inside, L.Dense(3)(inside), name="head")
    return gt.Model([x, z], [L.Concatenate()([head(shared(shared(x))), z]), x * 2.0])


def test_a_model_is_drawn_with_its_inputs_shared_layers_and_models_inside() -> None:
    found = texts(gt.plot.model(two_heads()))
    assert found.count("Dense 'shared'") == 2
    assert found.count("72 parameters") == 2
    for text in ("image", "facts", "multiply", "Concatenate", "output 0", "head in model", "relu"):
        assert text in found
    assert found.count("(?, 3)") == 3  # the facts, the head, and what is in it
    assert found.count("27 parameters") == 2


def test_a_sequence_and_other_modules_are_drawn_too() -> None:
    model = L.Sequential([L.Dense(4), L.Dropout(0.5)])
    assert "Dropout" in texts(gt.plot.model(model))
    model(gt.ones((2, 3)))
    assert "(?, 3)" in texts(gt.plot.model(model))

    class Mine(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [L.Dense(2), model]

    assert {"Mine", "Dense", "Sequential", "sequential in mine"} <= set(
        texts(gt.plot.model(Mine()))
    )


def test_a_loaded_model_is_drawn(tmp_path: Path) -> None:
    model = two_heads()
    model({"image": gt.ones((2, 8)), "facts": gt.ones((2, 3))})
    gt.save(model, tmp_path / "m.h5")
    texts(gt.plot.model(gt.load(tmp_path / "m.h5")))


def test_names_cannot_write_into_a_picture() -> None:
    x = gt.Input((2,), name="<script>&")
    picture = gt.plot.model(gt.Model(x, L.Dense(1)(x)))
    assert "<script>" not in picture.svg
    assert "<script>&" in texts(picture)


def test_a_picture_is_written_by_the_end_of_its_name(tmp_path: Path) -> None:
    figure()
    picture = gt.plot.model(two_heads(), tmp_path / "m.svg")
    assert (tmp_path / "m.svg").read_text(encoding="utf-8") == picture.svg == picture._repr_svg_()
    picture.save(tmp_path / "m.png")
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"must be \.svg, \.png or \.pdf"):
        picture.save(tmp_path / "m.gif")
    with pytest.raises(TypeError, match="expected a model"):
        gt.plot.model("model")


def test_a_run_is_drawn_a_chart_for_each_value() -> None:
    pytest.importorskip("matplotlib.pyplot")
    x = np.linspace(0, 1, 32, dtype="float32")[:, None]
    run = gt.training.fit(
        L.Sequential([L.Dense(1)]),
        (x, x),
        loss="mse",
        metrics=["mae"],
        epochs=3,
        validation_data=(x, x),
        verbose=False,
    )
    axes = gt.plot.history(run)
    assert len(axes) == 2
    for ax, name in zip(axes, ["loss", "mae"]):
        training, validation, best = ax.lines
        np.testing.assert_array_equal(training.get_ydata(), run.history[name])
        np.testing.assert_array_equal(validation.get_ydata(), run.history[f"val_{name}"])
        assert validation.get_xdata().tolist() == [1, 2, 3]
        assert best.get_ydata() == [min(run.history[f"val_{name}"])]
        ax.figure.canvas.draw()


def test_the_best_of_an_accuracy_is_the_largest_and_wide_losses_are_logarithmic() -> None:
    values = {"loss": [100.0, 1.0], "accuracy": [0.5, 0.9]}
    loss, accuracy = gt.plot.history(values, axes=list(figure().subplots(1, 2)))
    assert (loss.get_yscale(), accuracy.get_yscale()) == ("log", "linear")
    assert accuracy.lines[-1].get_ydata() == [0.9]


@pytest.mark.parametrize(
    ("run", "settings", "message"),
    [
        ({}, {}, "no finished epoch"),
        ({"loss": [1.0]}, {"names": ["mae"]}, "no 'mae'; there are loss"),
        ({"loss": [1.0]}, {"axes": []}, "got 0 axes for 1 names"),
    ],
)
def test_what_a_run_lacks_is_not_drawn(run: Any, settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gt.plot.history(run, **settings)


@pytest.mark.parametrize(
    ("labels", "predictions", "settings", "shown", "ticks"),
    [
        ([0, 1, 1], [0, 0, 1], {}, "1 0 1 1", "0 1"),
        ([0, 1, 1], [0, 0, 1], {"normalize": True}, "1.00 0.00 0.50 0.50", "0 1"),
        (["b", "a"], ["b", "b"], {}, "0 1 0 1", "a b"),
        ([0, 1], [[0.1, 0.9, 0.0], [0, 1, 0]], {}, "0 1 0 0 1 0 0 0 0", "0 1 2"),
        ([1], [1], {"names": ["no", "yes"]}, "0 0 0 1", "no yes"),
    ],
)
def test_confusions_are_counted_by_true_class(
    labels: Any, predictions: Any, settings: Any, shown: str, ticks: str
) -> None:
    ax = gt.plot.confusion(labels, predictions, ax=figure().add_subplot(), **settings)
    assert [text.get_text() for text in ax.texts] == shown.split()
    assert [text.get_text() for text in ax.get_yticklabels()] == ticks.split()
    ax.figure.canvas.draw()


def test_labels_that_are_no_classes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"labels must have shape \(n,\)"):
        gt.plot.confusion([[0, 1]], [0, 1])
    with pytest.raises(ValueError, match="got 2 names for 3 classes"):
        gt.plot.confusion([0, 2], [0, 1], names=["a", "b"])


def test_weights_have_a_row_for_each_variable() -> None:
    model = L.Sequential([L.Dense(4), L.Dropout(0.5), L.BatchNorm()])
    with pytest.raises(ValueError, match="call it first"):
        gt.plot.weights(model)
    model(gt.ones((2, 3)), training=True)
    model.layers[0].bias.assign([np.nan, 1.0, 2.0, 3.0])
    ax = gt.plot.weights(model, figure().add_subplot())
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels[:2] == ["layers/0/kernel (3, 4)", "layers/0/bias (4,), 1 not finite"]
    assert len(labels) == 6
    ax.figure.canvas.draw()


def test_pictures_need_no_variables_of_style_sheets_and_keep_long_names_short() -> None:
    """Most programs but browsers take what they do not know for black."""
    long = "a_name_that_goes_on_and_on_" * 4
    model = L.Sequential([L.Dense(2, name=long)])
    picture = gt.plot.model(model)
    assert "var(" not in picture.svg
    assert max(map(len, texts(picture))) < 40
    assert picture.svg.count("#eef3e6") == 1
    assert "prefers-color-scheme:dark" in picture.svg


def test_values_stand_at_the_epochs_in_which_they_were_measured(tmp_path: Path) -> None:
    figure()
    x, y = np.ones((8, 2)), np.arange(8) % 2
    options: dict[str, Any] = {"validation_data": (x, y), "validation_freq": 3, "verbose": False}
    kept = {"checkpoint": tmp_path / "run.gt", "resume": True}
    run = None
    for epochs in (4, 7):  # the second goes on from the file of the first
        model = L.Sequential([L.Dense(2)])
        run = gt.training.fit(model, (x, y), epochs=epochs, **options, **kept)
    lines = gt.plot.history(run, ["loss"])[0].lines
    assert lines[0].get_xdata().tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert lines[1].get_xdata().tolist() == [3, 6]


def test_charts_of_many_values_of_one_epoch_stand_in_rows() -> None:
    figure()
    axes = gt.plot.history({f"metric_{i}": [0.5] for i in range(5)})
    assert axes[0].figure.get_size_inches().tolist() == [13.5, 6.8]
    assert [ax.get_xticks().tolist() for ax in axes] == [[1.0]] * 5


def test_a_confusion_matrix_has_a_figure_of_its_own_that_shows_all_names() -> None:
    figure()
    names = ["setosa", "versicolor", "a class with a rather long name"]
    loss = gt.plot.history({"loss": [2.0, 1.0]})[0]
    ax = gt.plot.confusion([0, 1, 2], [0, 1, 1], names=names)
    assert ax.figure is not loss.figure
    ax.figure.draw_without_rendering()
    everything = ax.figure.bbox
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label):
        box = label.get_window_extent()
        assert everything.x0 <= box.x0 < box.x1 <= everything.x1, label
        assert everything.y0 <= box.y0 < box.y1 <= everything.y1, label


def test_lines_go_around_boxes() -> None:
    heights = (40.0, 74.0, 58.0, 26.0, 90.0, 42.0)
    boxes = [svg.Box(100.0 + 7 * i, height) for i, height in enumerate(heights)]
    edges = [(0, 1), (1, 2), (0, 3), (2, 3), (3, 4), (1, 5), (4, 5), (0, 5)]
    placed = svg.place(boxes, edges)
    for points in placed.edges:
        for (x0, y0), (x1, y1) in pairwise(points):
            for box, (x, y) in zip(boxes, placed.centres, strict=True):
                beside = max(y0, y - box.height / 2) >= min(y1, y + box.height / 2)
                around = x0 == x1 and abs(x0 - x) > box.width / 2
                assert beside or around


def test_what_is_no_run_is_refused() -> None:
    with pytest.raises(TypeError, match="expected what fit returned, or a dictionary"):
        gt.plot.history([0.5, 0.2])


# -- files, and what is no picture -----------------------------------------------------------------


def test_each_picture_can_be_written_to_a_file(tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason='pip install "gradtape[plot]"')
    pyplot.switch_backend("agg")
    model = L.Sequential([L.Dense(2)])
    model(gt.ones((1, 3)))
    gt.plot.history({"loss": [2.0, 1.0], "mae": [1.0, 0.5]}).savefig(tmp_path / "history.png")
    gt.plot.model(model).savefig(tmp_path / "model.svg")
    for name, axes in {
        "confusion": gt.plot.confusion([0, 1], [1, 1]),
        "weights": gt.plot.weights(model),
        "jacobian": gt.plot.jacobian(np.full((2, 2), 6e4, "float16")),
    }.items():
        axes.figure.savefig(tmp_path / f"{name}.png")
    pyplot.close("all")
    assert len([x for x in tmp_path.iterdir() if x.stat().st_size > 1000]) == 5


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"loss": ["a"]}, r"'loss' must be a list with a number for each epoch, got \['a'\]"),
        ({"loss": 1.0}, "'loss' must be a list with a number for each epoch, got 1.0"),
        ({"loss": [[1.0], [2.0]]}, "'loss' must be a list with a number for each epoch"),
        ({"loss": [1j]}, "'loss' must be a list with a number for each epoch"),
    ],
)
def test_a_history_of_no_numbers_is_refused(values: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        gt.plot.history(values, axes=figure().add_subplot())


def test_a_history_is_drawn_as_far_as_it_can_be() -> None:
    nan = float("nan")
    for values in (
        {"loss": [nan, nan]},
        {"loss": [1.0, float("inf")]},
        {"loss": [1.0], "val_loss": []},
        {1: [1.0, 2.0]},
        {"": [1.0]},
    ):
        (axes,) = gt.plot.history(values, axes=figure().add_subplot())
        axes.figure.canvas.draw()
    with pytest.raises(ValueError, match="names is empty; there are loss"):
        gt.plot.history({"loss": [1.0]}, [])


@pytest.mark.parametrize(
    ("labels", "predictions", "said"),
    [
        ([0, 1], [0.2, 0.9], r"must be classes, got numbers such as 0.2.*pass \(p > 0.5\)"),
        ([0, 1], [-2.3, 4.5], "predictions must be classes, got numbers such as -2.3"),
        ([0, 1], [[0.2], [0.9]], r"one score for each example.*pass \(scores\[:, 0\] > 0.5\)"),
        ([0.5, 1.0], [0, 1], "labels must be classes, got numbers such as 0.5"),
        ([0.0, float("nan")], [0, 1], "labels must be classes, got numbers such as nan"),
        ([0, 1], [[0.0, float("nan")], [0.0, 1.0]], "contain nan"),
        ([-1, 1], [0, 1], "labels must be classes from 0, got -1"),
        (["a", "b"], [0, 1], "labels such as a and predictions such as 0 are not the same"),
        ([None, "a"], ["a", "a"], "labels must be integers or words"),
        ([10**7], [0], "the largest class is 10000000"),
    ],
)
def test_what_is_no_class_is_refused(labels: Any, predictions: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        gt.plot.confusion(labels, predictions, ax=figure().add_subplot())


def test_classes_may_be_floats_truth_values_and_words_in_any_array() -> None:
    for labels, predictions in (
        ([0.0, 1.0], [0.0, 1.0]),
        ([False, True], [0, 1]),
        (np.array(["a", "b"], object), ["a", "b"]),
    ):
        axes = gt.plot.confusion(labels, predictions, ax=figure().add_subplot())
        assert axes.get_title(loc="left") == "accuracy 100.0%"
