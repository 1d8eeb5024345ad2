"""``tf.train``: checkpoints, by gradtape's files."""

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
    """Return the file of a path without its ending, as programs have it."""
    name = os.fspath(path)
    return name if name.endswith(".h5") else f"{name}.h5"


class _Restored:
    """What became of a restored checkpoint."""

    def __init__(self, report: Any) -> None:
        self.report = report

    def assert_consumed(self) -> _Restored:
        """Raise ``AssertionError`` if something of the file or of the objects is left."""
        left = self.report and (*self.report.missing, *self.report.unused)
        if left:
            raise AssertionError(f"checkpoint: not restored: {', '.join(left)}")
        return self

    def assert_existing_objects_matched(self) -> _Restored:
        """Raise ``AssertionError`` if something of the objects is not in the file."""
        if self.report and self.report.missing:
            raise AssertionError(f"checkpoint: not in the file: {', '.join(self.report.missing)}")
        return self

    def expect_partial(self) -> _Restored:
        """Return itself: nothing is told of what is left."""
        return self

    assert_nontrivial_match = run_restore_ops = initialize_or_restore = expect_partial


@adapts("training.Checkpoint")
class Checkpoint(NativeCheckpoint):
    """The state of objects, to be written to a file and put back."""

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        given = kwargs if root is None else {"root": root, **kwargs}
        super().__init__(**given, save_counter=gradtape.Variable(0, name="save_counter"))

    def save(self, file_prefix: Any, options: Any = None) -> str:
        """Write the state to a file under the next number; return its path without the ending."""
        self.save_counter.assign_add(1)
        return self.write(f"{os.fspath(file_prefix)}-{self.save_counter.item()}")

    def write(self, file_prefix: Any, options: Any = None) -> str:
        """Write the state to a file."""
        super().save(with_folders(_file(file_prefix)))
        return os.fspath(file_prefix)

    def restore(self, save_path: Any, options: Any = None) -> Any:  # type: ignore[override]
        """Put back what is in a file, as far as it fits; None restores nothing."""
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
    latest_checkpoint = property(lambda self: self.latest, doc="The last one's path, or None.")

    def save(self, checkpoint_number: Any = None, *options: Any, **ignored: Any) -> str:  # type: ignore[override]
        """Save under the next number, and remove those that are too many."""
        self.checkpoint.save_counter.assign_add(1)
        return super().save()

    def restore_or_initialize(self) -> str | None:
        """Restore the latest, and return its path; None if there is none."""
        path: Any = self.latest
        self.checkpoint.restore(path)
        return self.latest


@adapts("training.CheckpointManager")
def latest_checkpoint(checkpoint_dir: Any, latest_filename: Any = None) -> str | None:
    """Return the path of the latest checkpoint in a folder, None if there is none."""
    files = glob.glob(os.path.join(glob.escape(os.fspath(checkpoint_dir)), "*.h5"))
    found = [(int(m[1]), path) for path in files if (m := re.search(r"-(\d+)\.h5$", path))]
    return max(found, key=lambda x: (os.path.getmtime(x[1]), x[0]))[1] if found else None
