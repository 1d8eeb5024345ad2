"""Names under which a weights file would hold one of two variables are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gradtape as gt
from gradtape.saving import SaveError

SLASH = {"a/b": 1.0, "a": {"b": 2.0}}
DOT = {"a.b": 1.0, "a": {"b": 2.0}}


def with_parts(parts: dict[Any, Any]) -> gt.Module:
    def variables(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: variables(x) for key, x in value.items()}
        return gt.Variable(value)

    model = gt.Module("m")
    model.parts = variables(parts)  # type: ignore[attr-defined]
    return model


@pytest.mark.needs("weights")
@pytest.mark.parametrize(
    ("parts", "options", "name"),
    [
        ({1: 1.0, "1": 2.0}, {}, "parts/1"),
        ({None: 1.0, "None": 2.0}, {}, "parts/None"),
        (SLASH, {}, "parts/a/b"),
        (SLASH, {"layout": "pytorch"}, "parts.a.b"),
        (DOT, {"layout": "pytorch"}, "parts.a.b"),
    ],
)
def test_equal_names_are_refused(
    parts: dict[Any, Any], options: dict[str, str], name: str, tmp_path: Path
) -> None:
    model = with_parts(parts)
    for ending in ("safetensors",) if options else ("safetensors", "h5"):
        with pytest.raises(SaveError, match=f"have the name '{name}'"):
            model.save_weights(tmp_path / f"w.{ending}", **options)
    assert not list(tmp_path.iterdir())


def test_names_that_differ_by_more_than_a_dot_are_kept_apart(tmp_path: Path) -> None:
    model = with_parts(DOT)
    for ending in ("safetensors", "h5"):
        path = tmp_path / f"w.{ending}"
        model.save_weights(path)
        before = [v.item() for v in model.variables]
        for variable in model.variables:
            variable.assign(0.0)
        model.load_weights(path)
        assert [v.item() for v in model.variables] == before


def test_variables_by_name_are_all_variables() -> None:
    model = with_parts({1: 1.0, "1": 2.0})
    assert {path: v.item() for path, v in model.named_variables.items()} == {
        "parts/1": 1.0,
        "parts/1_": 2.0,
    }


@pytest.mark.needs("weights")
@pytest.mark.parametrize("key", ["", ".", "/", "a/", "b.", "{}", "a{}b", "{}_l0", " "])
def test_modules_below_odd_keys_come_back(key: str, tmp_path: Path) -> None:
    def model(value: float) -> gt.Module:
        found = with_parts({"first": {key: value}})
        found.modules = {key: with_parts({key: 2 * value}), "_": with_parts({"x": 3 * value})}  # type: ignore[attr-defined]
        return found

    for ending, layout in (
        ("safetensors", "gradtape"),
        ("h5", "gradtape"),
        ("pt.safetensors", "pytorch"),
    ):
        path = tmp_path / f"w.{ending}"
        model(1.0).save_weights(path, layout=layout)
        other = model(0.0)
        other.load_weights(path, layout=layout)
        assert sorted(v.item() for v in other.variables) == [1.0, 2.0, 3.0]
