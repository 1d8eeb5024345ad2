"""Exceptions that gradtape raises, each a subclass of the builtin that NumPy users would catch."""

from __future__ import annotations

__all__ = [
    "BackendMismatch",
    "BackendUnavailable",
    "BrokenPathWarning",
    "DistributedError",
    "EndlessLoop",
    "GradientError",
    "GradtapeError",
    "NonFiniteError",
    "OutOfMemory",
    "PluginError",
    "TraceError",
    "UnknownOp",
]


class GradtapeError(Exception):
    """Base of every exception that gradtape defines."""


class PluginError(GradtapeError, RuntimeError):
    """A plugin is inconsistent with another, or provides something malformed."""


class BackendUnavailable(GradtapeError, ImportError):
    """A backend's library or device cannot be used here; the message says how to get it."""


class BackendMismatch(GradtapeError, TypeError):
    """One op was given arrays of two backends."""


class OutOfMemory(GradtapeError, MemoryError):
    """A device has no memory left for an op; the message says what it holds."""


class UnknownOp(GradtapeError, LookupError):
    """No plugin provides the op (or a kernel of it) that was asked for."""


class GradientError(GradtapeError, LookupError):
    """A gradient was asked for where no rule can give one."""


class BrokenPathWarning(UserWarning):
    """A derivative lacks what came by a path that no gradient follows."""


class TraceError(GradtapeError, TypeError):
    """Python tried to read a value that is only a symbol while a function is traced."""


class EndlessLoop(GradtapeError, RuntimeError):
    """A loop took more steps than it may where nobody waits for it."""


class DistributedError(GradtapeError, RuntimeError):
    """Ranks of a job do different things, or one of them failed; the message names which."""


class NonFiniteError(GradtapeError, FloatingPointError):
    """An op made a NaN or an infinity under ``gradtape.debug.nan_guard``."""
