"""Files whose plugins are here in another version, or not at all."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fresh_process import run_isolated
from saved_modules import reloaded

import gradtape as gt
from gradtape.core.extend import Op
from gradtape.saving import MissingOp, MissingPlugin

triple = Op(
    "acme::triple",
    lambda xp, x: x * 3,
    gradients={"x": lambda g: g * 3.0},
    infer=lambda x: (x.shape, x.dtype),
)


class Gate(gt.Module):
    """A class that the plugin provides."""

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.size = size
        self.w = gt.Variable(np.ones(size, "float32"))

    def __call__(self, x: Any) -> Any:
        return x * self.w

    def get_config(self) -> dict[str, Any]:
        return {"size": self.size}


class Plugin:
    @gt.hookimpl
    def gradtape_ops(self) -> Any:
        return [triple]

    @gt.hookimpl
    def gradtape_modules(self) -> Any:
        return {"acme.Gate": Gate}


class Model(gt.Module):
    """Some of it needs the plugin, some does not."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.tools = Gate(), [triple, gt.tanh]
        self.dense = gt.layers.Dense(2, activation=lambda x: triple(x))
        self.plain = gt.layers.Dense(2)
        self.gate.note = "kept"
        self.label = "kept"

    def __call__(self, x: Any) -> Any:
        return self.gate(self.dense(x)) + self.plain(x)

    @gt.function(input_signature=[gt.TensorSpec([None])])
    def twice(self, x: Any) -> Any:
        return x * 2.0

    @gt.function
    def either(self, x: Any, thrice: bool) -> Any:
        return triple(x) if thrice else x * 2.0


@pytest.fixture
def info() -> Iterator[Any]:
    gt.register_plugin(Plugin(), name="acme")
    found = next(info for info in gt.registry().plugins if info.name == "acme")
    found.distribution, found.version = "acme-ops", "2.5"
    yield found
    if any(info.name == "acme" for info in gt.registry().plugins):
        gt.unregister_plugin("acme")


@pytest.fixture
def path(info: Any, tmp_path: Path) -> Path:
    model = Model()
    x = np.ones((1, 3), "float32")
    model.dense.trainable = True
    model.dense(x), model.plain(x), model(x)
    model.either(x[0], False), model.either(x[0], True)
    serve = gt.function(lambda x: triple(x), input_signature=[gt.TensorSpec([None])])
    gt.save(model, tmp_path / "model.h5", signatures={"serve": serve})
    return tmp_path / "model.h5"


def test_another_version_of_a_plugin_is_told_once_with_both(path: Path, info: Any) -> None:
    with warnings.catch_warnings(action="error"):
        gt.load(path)
    info.version = "3.0"
    with pytest.warns(
        UserWarning, match=r"plugin 'acme' has version 3\.0 here, .* saved with 2\.5\."
    ) as caught:
        gt.load(path)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("since", "here", "warns"),
    [("2.4", "2.10", False), ("2.5.0", "2.6.dev1", False), ("2.6", "3.0", True), ("1", "2", True)],
)
def test_a_version_that_means_the_same_is_no_warning(
    path: Path, info: Any, since: str, here: str, warns: bool
) -> None:
    info.compatible_since, info.version = since, here
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        gt.load(path)
    assert ["may behave differently" in str(x.message) for x in told] == [True] * warns


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("acme-ops", True),
        ("Acme.Ops_2", True),
        ("a", True),
        ("acme ops", False),
        ("acme; rm -rf /", False),
        ("--index-url=http://evil", False),
        ("git+https://evil/x", False),
        ("acme\n", False),
        ("-acme", False),
        ("a" * 200, False),
        ("", False),
    ],
)
def test_an_install_line_is_shown_for_a_name_of_a_package_alone_with_a_caution(
    name: str, shown: bool, info: Any, tmp_path: Path
) -> None:
    class Tripling(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None])])
        def f(self, x: Any) -> Any:
            return triple(x)

    info.distribution = name
    gt.save(Tripling(), tmp_path / "m.h5")
    gt.unregister_plugin("acme")
    with pytest.raises(MissingPlugin, match="needs plugin 'acme'") as caught:
        gt.load(tmp_path / "m.h5")
    message = str(caught.value)
    assert ("pip install" in message) == shown
    assert ("trust the file" in message) == shown
    assert message.isprintable()
    assert "allow_missing=True" in message


def test_what_does_not_need_the_plugin_is_loaded_without_it(path: Path) -> None:
    gt.unregister_plugin("acme")
    with pytest.raises(MissingPlugin):
        gt.load(path)
    model = gt.load(path, allow_missing=True)
    x = np.ones(3, "float32")
    assert model.twice(x).tolist() == [2.0, 2.0, 2.0]
    assert model.either(x, False).tolist() == [2.0, 2.0, 2.0]
    assert model.plain(x[None]).shape == (1, 2)
    assert (model.label, model.tools) == ("kept", [None, gt.tanh])
    assert (model.gate.note, model.gate.w.tolist()) == ("kept", [1.0, 1.0])
    assert (type(model.gate).__name__, model.gate.class_name) == ("LoadedModule", "Gate")
    assert model.dense.kernel.shape == (3, 2)
    assert len(model.trainable_variables) == 5
    for call in (model, model.signatures["serve"]):
        with pytest.raises(MissingOp, match=r"loaded with allow_missing: .*'acme::triple'"):
            call(x[None])
    with pytest.raises(MissingOp, match=r"either cannot run, .*'acme::triple'"):
        model.either(x, True)
    for module, missing in ((model.gate, "class 'acme.Gate'"), (model.dense, "acme::triple")):
        with pytest.raises(TypeError, match=rf"has no '__call__' \(.*{missing}"):
            module(x[None])


def test_saving_what_was_loaded_in_part_says_what_is_lost(path: Path) -> None:
    gt.unregister_plugin("acme")
    model = gt.load(path, allow_missing=True)
    with pytest.warns(UserWarning, match=r"model\.__call__ \(loaded with allow_mis") as caught:
        gt.save(model, path.with_name("part.h5"))
    assert len(caught) == 1
    told = str(caught[0].message)
    places = ("model.either", "gate.__call__", "dense.__call__", "signatures['serve']")
    assert [place for place in places if place in told] == list(places)
    again = gt.load(path.with_name("part.h5"))
    assert again.twice([1.0]).tolist() == [2.0]
    with pytest.raises(TypeError, match=r"has no '__call__' .loaded with allow_missing: .*triple"):
        again(np.ones((1, 3), "float32"))


def test_what_is_loaded_in_part_can_be_looked_at_in_a_fresh_process(path: Path) -> None:
    printed = run_isolated(
        "model = gt.load(sys.argv[1], allow_missing=True)\n"
        "print(sorted(model.named_variables), model.twice([1.0]).tolist())\n",
        path,
    )
    names = ["dense/bias", "dense/kernel", "gate/w", "plain/bias", "plain/kernel"]
    assert printed.strip() == f"{names} [2.0]"


def test_nothing_is_missing_for_a_file_that_needs_no_plugin(tmp_path: Path) -> None:
    module = gt.Module(name="m")
    module.w = gt.Variable(1.0)
    reloaded(module, tmp_path)
    assert gt.load(tmp_path / "model.h5", allow_missing=True).w.item() == 1.0


def _scale(attributes: list[str]) -> Any:
    class Scale(gt.Module):
        def __init__(self, name: str | None = None) -> None:
            super().__init__(name)
            for attribute in attributes:
                setattr(self, attribute, gt.Variable(np.ones(3, "float32")))

        def get_config(self) -> dict[str, Any]:
            return {"name": self.name}

        def __call__(self, x: Any) -> Any:
            return x * vars(self)[attributes[-1]]

    class Provider:
        @gt.hookimpl
        def gradtape_modules(self) -> Any:
            return {"acme.Scale": Scale}

    gt.register_plugin(Provider(), "acme_scale")
    return Scale


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (["w"], None),
        (["gain"], "has no 'gain' in the file, but has 'w', which Scale does not make"),
        (["w", "bias"], "has no 'bias' in the file. The class has changed"),
    ],
    ids=["the same", "renamed", "gained"],
)
def test_a_class_that_makes_other_variables_is_named(
    now: list[str], told: str | None, tmp_path: Path
) -> None:
    try:
        module = _scale(["w"])()
        module.w.assign([5.0, 6.0, 7.0])
        module(gt.ones((1, 3)))
        gt.save(module, tmp_path / "scale.h5")
        gt.unregister_plugin("acme_scale")
        _scale(now)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            loaded = gt.load(tmp_path / "scale.h5")
        assert loaded.w.tolist() == [5.0, 6.0, 7.0]
        assert [told in str(x.message) for x in found] == ([True] if told else [])
    finally:
        gt.unregister_plugin("acme_scale")


def test_the_message_counts_what_it_leaves_out(tmp_path: Path) -> None:
    record: Any = {"gradients": {"x": lambda g: g}, "infer": lambda x: (x.shape, x.dtype)}
    ops = [Op(f"acme::f{i}", lambda xp, x: x + 1, **record) for i in range(8)]

    class Many(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([2])])
        def f(self, x: Any) -> Any:
            for op in ops:
                x = op(x)
            return x

    provided = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: ops))
    with gt.register_plugin(provided, "acme_many"):
        gt.save(Many(), tmp_path / "m.h5")
    with pytest.raises(MissingPlugin, match=r"for acme::f0, .*acme::f4 and 3 more;"):
        gt.load(tmp_path / "m.h5")
