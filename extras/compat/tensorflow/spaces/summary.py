"""``tf.summary``: event files for TensorBoard, written by tensorboardX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import gradtape

from ..names import adapts
from ..tensors import convert_to_tensor

__all__ = ["create_file_writer", "create_noop_writer", "flush", "should_record_summaries"]

_writer: ContextVar[Any] = ContextVar("gradtape_summary_writer", default=None)


class _Writer:
    """A writer of event files; ``as_default`` selects it."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[_Writer]:
        """Select this writer in a block, with a default ``step``."""
        token = _writer.set((self.writer, step))
        try:
            yield self
        finally:
            _writer.reset(token)

    def flush(self) -> None:
        """Write buffered data."""
        if self.writer is not None:
            self.writer.flush()

    def close(self) -> None:
        """Close the files."""
        if self.writer is not None:
            self.writer.close()


@adapts("training.TensorBoard")
def create_file_writer(
    logdir: Any,
    max_queue: int = 10,
    flush_millis: int = 120_000,
    filename_suffix: str = "",
    name: Any = None,
) -> _Writer:
    """Return a writer of event files in a folder."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ImportError(f'tf.summary: {error}; pip install "gradtape[tensorboard]"') from error
    return _Writer(SummaryWriter(str(logdir), max_queue=max_queue, flush_secs=flush_millis // 1000))


def create_noop_writer() -> _Writer:
    """Return a writer that writes nothing."""
    return _Writer(None)


def should_record_summaries() -> bool:
    """Return whether a writer is selected."""
    return _writer.get() is not None and _writer.get()[0] is not None


def flush(writer: Any = None, name: Any = None) -> None:
    """Write buffered data."""
    found = writer or _Writer((_writer.get() or (None,))[0])
    found.flush()


def _written(kind: str, method: str, **options: Any) -> Callable[..., bool]:
    def write(name: str, data: Any, step: Any = None, **ignored: Any) -> bool:
        writer, usual = _writer.get() or (None, None)
        if writer is None:
            return False
        step = usual if step is None else step
        if step is None:
            raise ValueError(f"tf.summary.{kind}: pass a step, here or to as_default")
        add = getattr(writer, method)

        def run(step: Any, *data: Any) -> None:
            add(name, data[0].numpy() if data else text, int(step), **options)

        text = data if isinstance(data, str) else None
        values = () if text is not None else (convert_to_tensor(data),)
        gradtape.host_call(run, convert_to_tensor(step), *values)
        return True

    write.__name__ = write.__qualname__ = kind
    write.__doc__ = f"Write named {kind} data; return whether a writer is selected."
    return adapts("host_call")(write)


for _kind, _method, _options in (
    ("scalar", "add_scalar", {}),
    ("histogram", "add_histogram", {}),
    ("text", "add_text", {}),
    ("image", "add_images", {"dataformats": "NHWC"}),
):
    globals()[_kind] = _written(_kind, _method, **_options)
    __all__ += [_kind]
