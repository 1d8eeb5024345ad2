"""Data sets and exporters come through hooks: a plugin adds one, or replaces one of gradtape's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gradtape as gt
from gradtape.errors import PluginError, UnknownName

Register = Callable[..., None]


@pytest.fixture
def register() -> Iterator[Register]:
    names: list[str] = []

    def given(name: str, **hooks: Any) -> None:
        hooks = {f"gradtape_{k}": gt.hookimpl(lambda found=x: found) for k, x in hooks.items()}
        gt.register_plugin(SimpleNamespace(**hooks), name)
        names.append(name)

    yield given
    for name in names:
        gt.unregister_plugin(name)


def faces(count: int = 2) -> list[int]:
    return list(range(count))


def as_text(fn: Any, *args: Any, path: Any = None) -> str:
    text = str(gt.function(fn).get_concrete_function(*args).graph)
    if path is not None:
        Path(path).write_text(text)
    return text


def test_a_plugin_adds_a_data_set_and_replaces_one(register: Register) -> None:
    (x, _), _ = gt.datasets.load("digits")
    assert x.shape == (1437, 64)
    register("acme", datasets={"acme::faces": faces, "digits": faces})
    assert gt.datasets.load("acme::faces", count=3) == [0, 1, 2]
    assert gt.datasets.load("digits") == [0, 1]


def test_a_plugin_adds_an_exporter_and_replaces_one(register: Register, tmp_path: Path) -> None:
    register("acme", exporters={"text": as_text, "onnx": as_text})
    spec = gt.TensorSpec([2])
    for name in ("text", "onnx"):
        assert "sin" in gt.export.to(name, lambda x: gt.sin(x), spec, path=tmp_path / "model.txt")
        assert "sin" in (tmp_path / "model.txt").read_text()


def test_our_own_come_from_plugins() -> None:
    known = gt.registry()
    assert str(known.owner("dataset", "digits")).startswith("plugin 'datasets' (gradtape")
    assert known.exporters["onnx"] is gt.export.onnx
    assert known.exporters["stablehlo"] is gt.export.stablehlo


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gt.datasets.load("digit"), "the dataset 'digit'; near names: digits; there are"),
        (lambda: gt.export.to("onx", gt.sin, 1.0), "exporter 'onx'; near names: onnx; there are"),
    ],
)
def test_an_unknown_name_lists_near_ones(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(UnknownName, match=said):
        call()


def test_a_clash_is_refused_for_its_item_alone(register: Register) -> None:
    register("acme", datasets={"faces": faces, "acme::faces": faces})
    with pytest.raises(PluginError, match="both provide the dataset 'faces'"):
        register("other", datasets={"faces": faces})
    assert gt.datasets.load("acme::faces") == [0, 1]


def test_an_optimizer_that_is_none_is_refused_by_its_name(register: Register) -> None:
    register("acme", names={"optimizer": {"acme.sgd": gt.training.losses.Huber}})
    with pytest.raises(TypeError, match=r"as the optimizer 'acme\.sgd'; it must be a gradtape"):
        gt.training.optimizers.get("acme.sgd")


@pytest.mark.parametrize("name", ["acme.worst", "acme::worst"])
def test_names_of_files_hold_values_of_qualified_metrics(
    register: Register, tmp_path: Path, name: str
) -> None:
    def worst(y_true: Any, y_pred: Any) -> Any:
        return gt.max(gt.abs(y_true - y_pred), axis=-1) * 0.0

    register("acme", names={"metric": {name: worst}})
    file = f"{{epoch:02d}}-{{{name}:.2f}}-{{val_{name}:04.1f}}.h5"
    history = gt.training.fit(
        gt.layers.Dense(1),
        (gt.ones((4, 2)).numpy(), gt.ones((4, 1)).numpy()),
        loss="mse",
        metrics=[name],
        validation_split=0.5,
        callbacks=[gt.training.ModelCheckpoint(tmp_path / file)],
        verbose=False,
    )
    assert {name, f"val_{name}"} <= set(history.history)
    assert [path.name for path in tmp_path.iterdir()] == ["01-0.00-00.0.h5"]
