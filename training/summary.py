"""Values for TensorBoard, from loops that you write: functions with the names of ``tf.summary``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..core.extend import as_tensor, warn_user
from ..plugins.ops.control.effects import host_call

__all__ = [
    "create_file_writer",
    "create_noop_writer",
    "flush",
    "histogram",
    "image",
    "scalar",
    "should_record_summaries",
    "text",
    "trace_export",
    "trace_off",
    "trace_on",
]

#: The selected writer of tensorboardX, and the default step.
_SELECTED: ContextVar[Any] = ContextVar("gradtape_summary_writer", default=None)


class _Writer:
    """A writer of event files; ``as_default`` selects it."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[_Writer]:
        """Select this writer in a block, with a default ``step``."""
        token = _SELECTED.set((self.writer, step))
        try:
            yield self
        finally:
            _SELECTED.reset(token)

    def flush(self) -> None:
        """Write buffered data."""
        if self.writer is not None:
            self.writer.flush()

    def close(self) -> None:
        """Close the files."""
        if self.writer is not None:
            self.writer.close()


def create_file_writer(
    logdir: Any,
    max_queue: int = 10,
    flush_millis: int = 120_000,
    filename_suffix: str = "",
    name: Any = None,
) -> _Writer:
    """Return a writer of event files in a folder; its ``as_default()`` selects it in a block.

    Parameters
    ----------
    logdir
        The folder.
    max_queue, flush_millis
        How many values to buffer, and for how long.
    filename_suffix, name
        Ignored.

    Raises
    ------
    ImportError
        Without tensorboardX; the message has the command that installs it.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ImportError(f'tf.summary: {error}; pip install "gradtape[tensorboard]"') from error
    return _Writer(SummaryWriter(str(logdir), max_queue=max_queue, flush_secs=flush_millis // 1000))


def create_noop_writer() -> _Writer:
    """Return a writer that writes nothing.

    Examples
    --------
    >>> with gt.training.summary.create_noop_writer().as_default():
    ...     gt.training.summary.scalar("loss", 0.5, step=1)
    False
    """
    return _Writer(None)


def should_record_summaries() -> bool:
    """Return whether a writer is selected."""
    return _SELECTED.get() is not None and _SELECTED.get()[0] is not None


def flush(writer: Any = None, name: Any = None) -> None:
    """Write the buffered data of a writer, by default of the selected one."""
    found = writer or _Writer((_SELECTED.get() or (None,))[0])
    found.flush()


def _write(kind: str, method: str, name: str, data: Any, step: Any, **options: Any) -> bool:
    writer, usual = _SELECTED.get() or (None, None)
    if writer is None:
        return False
    step = usual if step is None else step
    if step is None:
        raise ValueError(f"tf.summary.{kind}: pass a step, here or to as_default")
    add: Callable[..., Any] = getattr(writer, method)

    def run(step: Any, *data: Any) -> None:
        add(name, data[0].numpy() if data else words, int(step), **options)

    words = data if isinstance(data, str) else None
    values = () if words is not None else (as_tensor(data),)
    host_call(run, as_tensor(step), *values)
    return True


def scalar(name: str, data: Any, step: Any = None, description: Any = None) -> bool:
    """Write a number; return whether a writer is selected. A trace writes in each run."""
    return _write("scalar", "add_scalar", name, data, step)


def histogram(
    name: str, data: Any, step: Any = None, buckets: Any = None, description: Any = None
) -> bool:
    """Write the distribution of a tensor's values; return whether a writer is selected."""
    return _write("histogram", "add_histogram", name, data, step)


def text(name: str, data: Any, step: Any = None, description: Any = None) -> bool:
    """Write a text; return whether a writer is selected."""
    return _write("text", "add_text", name, data, step)


def image(
    name: str, data: Any, step: Any = None, max_outputs: int = 3, description: Any = None
) -> bool:
    """Write images with the channels last; return whether a writer is selected."""
    return _write("image", "add_images", name, data, step, dataformats="NHWC")


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Warn that nothing is recorded: :func:`gradtape.profile` measures."""
    warn_user(
        "summary.trace_on: neither graphs nor profiles are written to event files; use "
        "gradtape.profile(), and print a function's graph",
        UserWarning,
    )


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Do nothing, because :func:`trace_on` records nothing."""


def trace_off() -> None:
    """Do nothing, because :func:`trace_on` records nothing."""
