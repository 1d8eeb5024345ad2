"""What programs run with: devices, saved models, checkpoints, event files and AutoGraph."""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import gradtape

from ...core.errors import BackendUnavailable
from ...core.extend import RestoredFunction, map_structure, without_expressions
from ...saving.checkpoints import Checkpoint as NativeCheckpoint
from ...saving.checkpoints import CheckpointManager as NativeManager
from .names import adapts

# -- tf.autograph ----------------------------------------------------------------------------------


def trace(*args: Any) -> None:
    """Print while a function is traced."""
    print(*args)


# -- tf.config -------------------------------------------------------------------------------------


_eager = False


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


LogicalDevice = PhysicalDevice


class LogicalDeviceConfiguration(NamedTuple):
    """The settings of a part of a device, which are ignored."""

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


def gpus() -> int:
    """Return the number of GPUs that CuPy can use."""
    try:
        return int(gradtape.registry().backend("cupy").xp.cuda.runtime.getDeviceCount())
    except (BackendUnavailable, LookupError, RuntimeError):
        return 0


@adapts("backend")
def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of a type, ``"CPU"`` or ``"GPU"``, or all."""
    found = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    if device_type != "CPU":
        found += [PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(gpus())]
    return [device for device in found if device_type in (None, device.device_type)]


@adapts("backend")
def list_logical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of a type, with the names that ``tf.device`` takes."""
    found = list_physical_devices(device_type)
    return [PhysicalDevice(x.name.replace("physical_", ""), x.device_type) for x in found]


get_visible_devices = list_physical_devices


def nothing(*args: Any, **options: Any) -> None:
    """Do nothing: settings of TensorFlow's runtime have no effect here."""


def get_soft_device_placement() -> bool:
    """Return True: without a GPU, ``tf.device`` uses the CPU."""
    return True


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Choose whether each ``tf.function`` runs its Python function instead of a trace."""
    global _eager
    _eager = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Return whether each ``tf.function`` runs its Python function."""
    return _eager


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Return whether CuPy can use a GPU."""
    return gpus() > 0


def gpu_device_name() -> str:
    """Return the name of the first GPU, or ``""`` without one."""
    return "/device:GPU:0" if gpus() else ""


is_built_with_cuda = is_built_with_gpu_support = is_gpu_available


# -- tf.saved_model --------------------------------------------------------------------------------

_FILE = "saved_model.h5"


@adapts()
class SaveOptions:
    """Options of :func:`save`."""

    def __init__(self, *, experimental_custom_gradients: bool = True, **other: Any) -> None:
        self.experimental_custom_gradients = bool(experimental_custom_gradients)


@adapts("save")
def save(
    obj: Any,
    export_dir: str | os.PathLike[str],
    signatures: Any = None,
    options: SaveOptions | None = None,
) -> None:
    """Save a module with its variables and functions; see :func:`gradtape.save`."""
    if signatures is not None and not isinstance(signatures, Mapping):
        signatures = {"serving_default": signatures}
    options = options or SaveOptions()
    path = with_folders(_path(export_dir))
    if not options.experimental_custom_gradients:
        gradtape.save(obj, path, signatures, custom_gradients=False)
        with contextlib.suppress(gradtape.saving.SaveError):
            whole = os.path.join(_wholes().name, f"{len(_whole_of)}.h5")
            gradtape.save(obj, whole, signatures)
            _whole_of[_digest(path)] = whole
        return
    gradtape.save(obj, path, signatures)


#: Files with custom gradients, which this process still knows, by the digest of those without.
_whole_of: dict[str, str] = {}


@functools.cache
def _wholes() -> Any:
    return tempfile.TemporaryDirectory(prefix="gradtape-")


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@adapts("load")
def load(export_dir: str | os.PathLike[str], tags: Any = None, options: Any = None) -> Any:
    """Load a module; see :func:`gradtape.load`. ``tags`` and ``options`` are ignored.

    A model saved without custom gradients keeps them in the process that saved it. Functions in
    ``signatures`` return dictionaries.
    """
    path = _path(export_dir)
    found = gradtape.load(_whole_of.get(_digest(path), path) if _whole_of else path)
    for function in getattr(found, "signatures", {}).values():
        function.__class__ = Signature
    return found


class Signature(RestoredFunction):
    """A function that takes its inputs by name and returns a dictionary."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _by_name(super().__call__(*args, **kwargs))

    @property
    def structured_outputs(self) -> dict[str, Any]:
        """A ``tf.TensorSpec`` for each output."""
        concrete = self.concrete_functions[0]
        outputs = concrete.graph.outputs
        made = [gradtape.TensorSpec(without_expressions(x.shape), x.dtype) for x in outputs]
        return _by_name(map_structure(lambda x: made[x.index], concrete.results))

    @property
    def structured_input_signature(self) -> Any:
        """An empty tuple, and a ``tf.TensorSpec`` for each input by name."""
        concrete = self.concrete_functions[0]
        return (), dict(zip(self.signature.parameters, concrete.arguments[0]))


def _by_name(found: Any) -> dict[str, Any]:
    if isinstance(found, dict):
        return found
    several = found if isinstance(found, (list, tuple)) else [found]
    return {f"output_{i}": x for i, x in enumerate(several)}


def with_folders(path: str | os.PathLike[str]) -> str:
    """Create the folders of a path, and return it."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    return os.fspath(path)


def _path(export_dir: str | os.PathLike[str]) -> str:
    path = os.fspath(export_dir)
    return os.path.join(path, _FILE) if os.path.isdir(path) else path


# -- tf.train --------------------------------------------------------------------------------------


def _file(path: Any) -> str:
    """Return the file for a path, which TensorFlow's programs give without an extension."""
    return os.fspath(path).removesuffix(".h5") + ".h5"


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

    _may_be_unbuilt = True

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


@adapts("training.Checkpoint")
def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Return the names and shapes of the variables in a checkpoint; names are paths in the file."""
    path = latest_checkpoint(ckpt_dir_or_file) or ckpt_dir_or_file
    return [(name, [*x.shape]) for name, x in NativeCheckpoint.variables_in(_file(path)).items()]


@adapts("training.Checkpoint")
def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """Return the variable of a name in a checkpoint as an array."""
    path = latest_checkpoint(ckpt_dir_or_file) or ckpt_dir_or_file
    return NativeCheckpoint.variables_in(_file(path))[name]


# -- the namespaces --------------------------------------------------------------------------------

#: By namespace, its documentation and its names.
SPACES = {
    "saved_model": (
        "``tf.saved_model``: modules in gradtape's HDF5 files.",
        "SaveOptions load save",
    ),
    "autograph": ("``tf.autograph``: gradtape's conversion of Python control flow.", "trace"),
    "config": (
        "``tf.config``: the available devices. Settings of TensorFlow's runtime are ignored.",
        (
            "LogicalDevice LogicalDeviceConfiguration PhysicalDevice functions_run_eagerly "
            "get_soft_device_placement get_visible_devices gpu_device_name is_built_with_cuda "
            "is_built_with_gpu_support is_gpu_available list_logical_devices "
            "list_physical_devices nothing run_functions_eagerly"
        ),
    ),
    "train": (
        "``tf.train``: checkpoints in gradtape's files.",
        "Checkpoint CheckpointManager latest_checkpoint list_variables load_variable",
    ),
}
