"""Saving and loading amid generators, tapes, traces, backends, and classes of all sorts."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pretend_gpu
import pytest
from fresh_process import assert_same_bits
from saved_modules import Affine, reloaded

import gradtape as gt


def test_random_functions_are_saved_with_the_state_of_their_generator(tmp_path: Path) -> None:
    class Draws(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.generator = gt.random.Generator(5)

        @gt.function(input_signature=[gt.TensorSpec([None])])
        def own(self, x: Any) -> Any:
            return x + self.generator.normal((3,))

        @gt.function(input_signature=[gt.TensorSpec([None])])
        def shared(self, x: Any) -> Any:
            return x * gt.random.uniform((3,))

    gt.random.set_seed(1)
    module = Draws()
    x = np.ones(3, "float32")
    module.own(x)
    loaded = reloaded(module, tmp_path)
    assert gt.saving.verify(tmp_path / "model.h5").ok
    for _ in range(2):
        assert_same_bits([loaded.own(x).numpy()], [module.own(x).numpy()])
        drawn = []
        for it in (loaded, module):  # they draw from one generator
            gt.random.set_seed(2)
            drawn.append(it.shared(x).numpy())
        assert_same_bits(drawn[:1], drawn[1:])


def test_saving_makes_no_further_traces(tmp_path: Path) -> None:
    class General(gt.Module):
        @gt.function
        def f(self, x: Any) -> Any:
            return x * 2.0

    module = General()
    module.f.get_concrete_function(gt.TensorSpec(None))
    gt.save(module, tmp_path / "a.h5")
    assert len(module.f.concrete_functions) == 1


def test_saving_and_loading_inside_a_tape_or_a_trace(tmp_path: Path) -> None:
    module = Affine(2, 2)
    module(np.ones((1, 2), "float32"))
    path = tmp_path / "a.h5"
    with gt.GradientTape() as tape:
        gt.save(module, path)
        loaded = gt.load(path)
        assert gt.saving.verify(path).ok
    assert tape.watched_variables() == ()

    @gt.function
    def traced(x: Any) -> Any:
        gt.save(module, path)
        kept.append(gt.load(path))
        return x * 1.0

    kept: list[Any] = []
    traced(1.0)
    assert_same_bits([kept[0].weight.numpy()], [loaded.weight.numpy()])


@pytest.mark.parametrize("depth", [1, 30, 61, 62, 63, 64, 65, 100])
def test_a_chain_of_modules_loads_whenever_it_could_be_saved(depth: int, tmp_path: Path) -> None:
    root = link = gt.Module(name="m")
    for _ in range(depth):
        link.next = gt.Module(name="m")
        link = link.next
    link.w = gt.Variable(1.0)
    path = tmp_path / "a.h5"
    if depth < 64:
        gt.save(root, path)
        assert len(gt.load(path).variables) == 1
    else:
        with pytest.raises(gt.saving.SaveError, match="nested deeper than 64"):
            gt.save(root, path)


def test_a_module_on_another_backend_is_saved_loaded_and_verified_there(tmp_path: Path) -> None:
    plugin = pretend_gpu.Plugin("pretend_saving")
    gt.register_plugin(plugin, name="pretend_saving")
    try:
        module = Affine(4, 3)
        x = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)
        expected = module(x).numpy()
        module.to("pretend_saving:1")
        gt.save(module, tmp_path / "a.h5")
        report = gt.saving.verify(tmp_path / "a.h5", "pretend_saving")
        assert report.ok, report.table()
        assert len(report.checks) == 6
        assert gt.saving.verify(tmp_path / "a.h5").ok
        with gt.backend("pretend_saving:1"):
            loaded = gt.load(tmp_path / "a.h5")
            assert type(loaded.weight.array) is plugin.library.ndarray
            np.testing.assert_allclose(loaded(gt.constant(x)).numpy(), expected, rtol=1e-6)
    finally:
        gt.unregister_plugin("pretend_saving")


def test_training_may_be_none(tmp_path: Path) -> None:
    class Late(gt.Module):
        def __call__(self, x: Any, training: Any = None) -> Any:
            return x * (3.0 if training else 2.0 if training is None else 1.0)

    module = Late()
    module(np.ones(2, "float32"))
    loaded = reloaded(module, tmp_path)
    x = np.ones(1, "float32")
    assert [loaded(x, training=t).item() for t in (None, False, True)] == [2.0, 1.0, 3.0]
    assert loaded(x).item() == 2.0


def test_a_module_that_a_class_hides_is_left_out(tmp_path: Path) -> None:
    class Hiding(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shown, self.hidden = gt.Variable(1.0), Affine(1, 1)

        def own_leaves(self) -> Any:
            return [("shown", self.shown)]

    loaded = reloaded(Hiding(), tmp_path)
    assert [v.item() for v in loaded.variables] == [1.0]
    assert not hasattr(loaded, "hidden")


def test_defaults_are_kept_if_a_file_can_hold_them(tmp_path: Path) -> None:
    three, how = np.int64(3), {"by": [2.0]}

    class Defaults(gt.Module):
        @gt.function
        def f(self, x: Any, n: Any = three, how: Any = how) -> Any:
            return x * float(n) * how["by"][0]

        @gt.function
        def g(self, x: Any, key: Any = frozenset()) -> Any:
            return x * 1.0 if key is None else x

    module = Defaults()
    module.f(gt.constant(1.0), 3)
    module.g(gt.constant(1.0), None)
    loaded = reloaded(module, tmp_path)
    assert loaded.f(2.0, 3).item() == 12.0
    assert loaded.g(2.0).item() == 2.0  # a default that a file cannot hold is None there


def test_a_loaded_module_can_be_copied_and_called_and_saved(tmp_path: Path) -> None:
    module = Affine(2, 2)
    x = np.ones((1, 2), "float32")
    module(x)
    loaded = reloaded(module, tmp_path)
    twin = copy.copy(loaded)
    assert_same_bits([twin(x).numpy()], [module(x).numpy()])
    again = reloaded(loaded, tmp_path)
    assert_same_bits([again(x, training=True).numpy()], [module(x, training=True).numpy()])
    assert "affine" in repr(again)
    with pytest.raises(AttributeError):
        _ = loaded._private


def test_deep_values_are_refused_when_saving(tmp_path: Path) -> None:
    module, nested = gt.Module(name="m"), []
    module.nested = nested
    for _ in range(70):
        nested.append([])
        nested = nested[0]
    with pytest.raises(gt.saving.SaveError, match="nested too deeply"):
        gt.save(module, tmp_path / "a.h5")
