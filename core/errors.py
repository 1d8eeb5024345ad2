"""Exceptions that gradtape raises, each a subclass of the builtin that NumPy users would catch."""

from __future__ import annotations

__all__ = [
    "BackendMismatch",
    "BackendUnavailable",
    "BrokenPathWarning",
    "DistributedError",
    "EndlessLoop",
    "ExecutorWarning",
    "GradientError",
    "GradtapeError",
    "NonFiniteError",
    "OutOfMemory",
    "PluginError",
    "ThreadsWarning",
    "TraceError",
    "UnknownName",
    "UnknownOp",
]


class GradtapeError(Exception):
    """Base of every exception that gradtape defines."""


class PluginError(GradtapeError, RuntimeError):
    """A plugin is inconsistent with another, or provides something malformed."""


class BackendUnavailable(GradtapeError, ImportError):
    """A backend's library or device cannot be used here; the message says how to get it."""


class BackendMismatch(GradtapeError, TypeError):
    """One op received arrays of two backends."""


class OutOfMemory(GradtapeError, MemoryError):
    """A device has no memory left for an op; the message says what the device holds."""


class UnknownName(GradtapeError, ValueError, LookupError):
    """No plugin provides what a text names: an activation, an optimizer, a loss, ..."""


class UnknownOp(GradtapeError, LookupError):
    """No plugin provides the requested op, or a kernel for it."""


class GradientError(GradtapeError, LookupError):
    """No rule can compute the requested gradient, or a part of it is missing on a strict tape."""


class BrokenPathWarning(UserWarning):
    """A derivative is incomplete, because an op on a path from the source has no gradient."""


class ExecutorWarning(RuntimeWarning):
    """An executor failed, and the plain executor runs the function instead, more slowly."""


class ThreadsWarning(RuntimeWarning):
    """Threads wait for each other instead of computing; the message says how many to use."""


class TraceError(GradtapeError, TypeError):
    """Python code tried to read a value that is unknown while a function is traced."""


class EndlessLoop(GradtapeError, RuntimeError):
    """A loop ran more steps than the limit for the checks that gradtape runs itself."""


class DistributedError(GradtapeError, RuntimeError):
    """Ranks of a job do different things, or a rank failed; the message names the rank."""


class NonFiniteError(GradtapeError, FloatingPointError):
    """An op made a NaN or an infinity under ``gradtape.debug.nan_guard``."""
