"""``tf.train``: checkpoints in gradtape's files."""

from __future__ import annotations

import glob
import os
import re
from typing import Any

import gradtape

from ....saving.checkpoints import Checkpoint as NativeCheckpoint
from ....saving.checkpoints import CheckpointManager as NativeManager
from ..names import adapts
from ..saved_model import with_folders

__all__ = ["Checkpoint", "CheckpointManager", "latest_checkpoint"]

_native = gradtape.training


def _file(path: Any) -> str:
    """Return the file for a path, which TensorFlow's programs give without an extension."""
    name = os.fspath(path)
    return name if name.endswith(".h5") else f"{name}.h5"


class _Restored:
    """The report of a restored checkpoint."""

    def __init__(self, report: Any) -> None:
        self.report = report

    def assert_consumed(self) -> _Restored:
        """Raise ``AssertionError`` if part of the file or of the objects was not restored."""
        left = self.report and (*self.report.missing, *self.report.unused)
        if left:
            raise AssertionError(f"checkpoint: not restored: {', '.join(left)}")
        return self

    def assert_existing_objects_matched(self) -> _Restored:
        """Raise ``AssertionError`` if part of the objects is not in the file."""
        if self.report and self.report.missing:
            raise AssertionError(f"checkpoint: not in the file: {', '.join(self.report.missing)}")
        return self

    def expect_partial(self) -> _Restored:
        """Return itself: nothing warns of parts that were not restored."""
        return self

    assert_nontrivial_match = run_restore_ops = initialize_or_restore = expect_partial


@adapts("training.Checkpoint")
class Checkpoint(NativeCheckpoint):
    """Saves the state of objects to a file, and restores it."""

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        given = kwargs if root is None else {"root": root, **kwargs}
        super().__init__(**given, save_counter=gradtape.Variable(0, name="save_counter"))

    def save(self, file_prefix: Any, options: Any = None) -> str:
        """Write the state to the next numbered file; return its path without the extension."""
        self.save_counter.assign_add(1)
        return self.write(f"{os.fspath(file_prefix)}-{self.save_counter.item()}")

    def write(self, file_prefix: Any, options: Any = None) -> str:
        """Write the state to a file."""
        super().save(with_folders(_file(file_prefix)))
        return os.fspath(file_prefix)

    def restore(self, save_path: Any, options: Any = None) -> Any:  # type: ignore[override]
        """Restore the parts of a file that fit; None restores nothing."""
        if save_path is None:
            return _Restored(None)
        return _Restored(super().restore(_file(save_path), strict=False))

    read = restore


@adapts("training.CheckpointManager")
class CheckpointManager(NativeManager):
    """Numbered checkpoints in a folder; see :class:`gradtape.training.CheckpointManager`."""

    def __init__(
        self,
        checkpoint: Any,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: Any = None,
        checkpoint_name: str = "ckpt",
        *options: Any,
        **ignored: Any,
    ) -> None:
        super().__init__(checkpoint, directory, max_to_keep, name=checkpoint_name)

    directory = property(lambda self: self.folder, doc="The folder.")
    latest_checkpoint = property(lambda self: self.latest, doc="The latest one's path, or None.")

    def save(self, checkpoint_number: Any = None, *options: Any, **ignored: Any) -> str:  # type: ignore[override]
        """Save the next checkpoint, and remove the oldest beyond ``max_to_keep``."""
        self.checkpoint.save_counter.assign_add(1)
        return super().save()

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint and return its path, or None without one."""
        path: Any = self.latest
        self.checkpoint.restore(path)
        return self.latest


@adapts("training.CheckpointManager")
def latest_checkpoint(checkpoint_dir: Any, latest_filename: Any = None) -> str | None:
    """Return the path of the latest checkpoint in a folder, or None."""
    files = glob.glob(os.path.join(glob.escape(os.fspath(checkpoint_dir)), "*.h5"))
    found = [(int(m[1]), path) for path in files if (m := re.search(r"-(\d+)\.h5$", path))]
    return max(found, key=lambda x: (os.path.getmtime(x[1]), x[0]))[1] if found else None
