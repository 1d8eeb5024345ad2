"""A holder without functions keeps samples of the calls of its parts."""

import numpy as np

import gradtape as gt


def _trained():
    model = gt.layers.Sequential([gt.layers.Dense(3, activation="relu"), gt.layers.Dense(1)])
    optimizer = gt.training.Adam(0.01)
    x = np.ones((8, 2), "float32")
    gt.training.fit(model, (x, x[:, :1]), optimizer=optimizer, loss="mse", verbose=False)
    return model, optimizer


def _names(path):
    report = gt.saving.verify(path)
    assert report
    return {check.function for check in report.checks}, len(report.checks)


def test_a_holder_of_model_and_optimizer_is_proved_as_the_model_alone(tmp_path):
    both = gt.Module("both")
    both.model, both.optimizer = _trained()
    gt.save(both.model, tmp_path / "alone.h5")
    gt.save(both, tmp_path / "both.h5")
    assert _names(tmp_path / "both.h5") == _names(tmp_path / "alone.h5")
    again = gt.load(tmp_path / "both.h5")
    assert type(again.model) is gt.layers.Sequential
    x = np.ones((2, 2), "float32")
    np.testing.assert_array_equal(again.model(x), both.model(x))
    gt.save(again, tmp_path / "called.h5")
    assert _names(tmp_path / "called.h5") == _names(tmp_path / "both.h5")


def test_parts_in_lists_and_inner_holders_are_proved_and_shared_ones_once(tmp_path):
    root, inner = gt.Module("root"), gt.Module("inner")
    inner.models = [gt.layers.Dense(1, name="one"), gt.layers.Dense(2, name="two")]
    root.inner, root.same = inner, inner.models[0]
    for model in inner.models:
        model(gt.ones((2, 3)))
    gt.save(root, tmp_path / "root.h5")
    names, _ = _names(tmp_path / "root.h5")
    assert names == {"one.__call__", "two.__call__"}


def test_a_part_that_was_never_called_is_kept_without_samples(tmp_path):
    root = gt.Module("root")
    root.one, root.two = gt.layers.Dense(1, name="one"), gt.layers.Dense(1, name="two")
    root.one(gt.ones((2, 3)))
    root.two.build((None, 3))
    gt.save(root, tmp_path / "root.h5")
    assert _names(tmp_path / "root.h5")[0] == {"one.__call__"}


def test_metrics_and_schedules_of_a_holder_are_saved_as_before(tmp_path):
    root = gt.Module("root")
    root.metric = gt.training.metrics.MeanSquaredError()
    root.metric.update_state(gt.ones((2, 1)), gt.zeros((2, 1)))
    root.rate = gt.training.schedules.ExponentialDecay(0.1, 10, 0.5)
    gt.save(root, tmp_path / "root.h5")
    assert gt.load(tmp_path / "root.h5").metric.result().item() == 1.0


def test_a_part_that_differs_is_found_by_verify(tmp_path, monkeypatch):
    both = gt.Module("both")
    both.model, both.optimizer = _trained()
    gt.save(both, tmp_path / "both.h5")
    monkeypatch.setattr(gt.layers.Dense, "call", lambda self, x: x @ self.kernel * 2.0)
    report = gt.saving.verify(tmp_path / "both.h5", max_memory=np.inf, max_seconds=np.inf)
    assert not report
    assert not report.ok


def test_a_report_of_nothing_is_false(tmp_path):
    root = gt.Module("root")
    root.value = gt.Variable(1.0)
    gt.save(root, tmp_path / "root.h5")
    report = gt.saving.verify(tmp_path / "root.h5")
    assert not report
    assert not report.ok
