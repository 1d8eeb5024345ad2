"""A manager keeps the last checkpoints and the best, and leaves others' files alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt
from gradtape.saving import LoadError, SaveError
from gradtape.training import Checkpoint, CheckpointManager


def saved(manager: CheckpointManager, *losses: float | None) -> list[str]:
    """Save with each of these losses; return the names of the files that are left."""
    for loss in losses:
        manager.save(None if loss is None else {"val_loss": loss})
    return [os.path.basename(path) for path in manager.checkpoints]


def number(path: str | None) -> int:
    assert path is not None
    return int(path[-8:-3])


@pytest.mark.parametrize(
    ("losses", "left", "best"),
    [
        ([3, 2, 1], [2, 3], 3),
        ([1, 2, 3], [1, 2, 3], 1),
        ([2, 1, 3, 4, 5], [2, 4, 5], 2),
        ([2, 1, 1, 4, 5], [2, 4, 5], 2),  # the first of equals
        ([1, None, None, None], [1, 3, 4], 1),
        ([float("nan"), 2, float("inf"), None], [2, 3, 4], 2),
        ([None, None, None], [2, 3], None),
        ([-1, float("-inf"), 0, 0], [2, 3, 4], 2),
    ],
)
def test_the_last_and_the_best_are_kept(
    losses: list[Any], left: list[int], best: int | None, tmp_path: Path
) -> None:
    manager = CheckpointManager(Checkpoint(step=0), tmp_path / "new" / "folder", 2, "val_loss")
    assert (manager.latest, manager.best, manager.checkpoints) == (None, None, [])
    assert manager.restore() is None
    saved(manager, *losses)
    # another one reads the same from the files
    for one in (manager, CheckpointManager(Checkpoint(step=0), manager.folder, 2, "val_loss")):
        assert list(map(number, one.checkpoints)) == left
        assert number(one.latest) == left[-1]
        assert one.best is None if best is None else number(one.best) == best


def test_more_is_better_of_what_is_called_so(tmp_path: Path) -> None:
    manager = CheckpointManager(Checkpoint(step=0), tmp_path, 1, best="val_accuracy")
    for value in (0.5, 0.9, 0.7):
        manager.save({"val_accuracy": value})
    assert number(manager.best) == 2
    other = CheckpointManager(Checkpoint(step=0), tmp_path, 1, best="val_accuracy", mode="min")
    assert number(other.best) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"best": "score"}, "the name 'score' does not show whether"),
        ({"best": "accuracy_loss"}, "the name 'accuracy_loss' does not show"),
        ({"best": "loss", "mode": "least"}, 'mode must be "min" or "max", got \'least\''),
        ({"keep": 0}, "keep must be a positive integer or None, got 0"),
        ({"keep": 2.5}, "keep must be a positive integer or None"),
        ({"name": "../out"}, "'../out' cannot be part of a file name"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(
    options: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        CheckpointManager(Checkpoint(step=0), tmp_path, **options)


def test_a_metric_that_was_not_measured_is_refused(tmp_path: Path) -> None:
    manager = CheckpointManager(Checkpoint(step=0), tmp_path, best="val_loss")
    with pytest.raises(ValueError, match="best='val_loss' was not measured; measured are loss"):
        manager.save({"loss": 1.0})
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError, match=r"expected a gradtape.training.Checkpoint, got Dense"):
        CheckpointManager(gt.layers.Dense(1), tmp_path)


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    model = gt.layers.Dense(1)
    model(gt.ones((1, 1)))
    gt.save(model, tmp_path / "checkpoint-00001.h5")
    Checkpoint(step=1).save(tmp_path / "checkpoint-00002.h5")
    (tmp_path / "checkpoint-00003.h5").write_bytes(b"something else")
    (tmp_path / "checkpoint-00004.h5").mkdir()
    CheckpointManager(Checkpoint(step=5), tmp_path, 1, name="other").save()
    for name in ("checkpoint-00009.h5.txt", "checkpoint-9.h5", "a-checkpoint-00009.h5", "notes"):
        (tmp_path / name).write_text("mine")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    manager = CheckpointManager(Checkpoint(step=0), tmp_path, 1)
    with pytest.warns(UserWarning, match="ignoring a checkpoint.*checkpoint-0000"):
        assert manager.checkpoints == []
    assert saved(manager, None, None, None) == ["checkpoint-00007.h5"]
    after = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert {path: after.get(path) for path in before} == before
    assert {path.name for path in after.keys() - before.keys()} == {"checkpoint-00007.h5"}


def test_numbers_go_on_and_files_that_are_gone_are_not_missed(tmp_path: Path) -> None:
    manager = CheckpointManager(Checkpoint(step=0), tmp_path, 3, "val_loss")
    saved(manager, 2.0, 1.0, 3.0)
    os.unlink(str(manager.best))
    assert number(manager.best) == 1
    other = CheckpointManager(Checkpoint(step=0), tmp_path, 3, "val_loss")
    assert number(other.save({"val_loss": 5.0})) == 4
    assert list(map(number, manager.checkpoints)) == [1, 3, 4]


def test_it_restores_the_latest_or_another(tmp_path: Path) -> None:
    checkpoint = Checkpoint(step=0)
    manager = CheckpointManager(checkpoint, tmp_path, None, "val_loss")
    for step, loss in enumerate([3.0, 1.0, 2.0]):
        checkpoint.step = step
        manager.save({"val_loss": loss})
    manager.restore()
    assert checkpoint.step == 2
    manager.restore(manager.best)
    assert checkpoint.step == 1
    with pytest.raises(LoadError, match="no such file"):
        manager.restore(tmp_path / "checkpoint-00009.h5")


def test_it_says_what_there_is(tmp_path: Path) -> None:
    manager = CheckpointManager(Checkpoint(step=0), tmp_path, 5, "val_loss")
    assert manager.summary() == f"{tmp_path}: 0 checkpoints"
    saved(manager, 0.25, None, 0.5)
    assert manager.summary().splitlines() == [
        f"{tmp_path}: 3 checkpoints",
        "checkpoint-00001.h5  val_loss 0.25  best",
        "checkpoint-00002.h5",
        "checkpoint-00003.h5  val_loss 0.5  latest",
    ]
    assert "3 checkpoints" in repr(manager)


def test_a_save_that_fails_removes_nothing(tmp_path: Path) -> None:
    w, optimizer = gt.Variable(1.0), gt.training.SGD(0.1, 0.9)
    manager = CheckpointManager(Checkpoint(optimizer=optimizer), tmp_path, 1)
    manager.save()
    optimizer.apply_gradients([(gt.constant(1.0), w)])
    with pytest.raises(SaveError, match="not in the checkpoint"):
        manager.save()
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-00001.h5"]
    (tmp_path / "file").write_text("")
    with pytest.raises(SaveError, match="cannot make this folder"):
        CheckpointManager(Checkpoint(step=1), tmp_path / "file" / "inside").save()
