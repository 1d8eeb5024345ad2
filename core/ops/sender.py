"""``Sender``: how arrays get from host memory to a device, while the device may be at work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backend import Backend

__all__ = ["Sender"]


class Sender:
    """Copies arrays to a device; this one has copied when :meth:`send` returns.

    Parameters
    ----------
    backend
        The device's backend.
    device
        The device, without the backend's name.
    """

    def __init__(self, backend: Backend, device: str | None) -> None:
        self.backend, self.device = backend, device

    def send(self, value: Any) -> Any:
        """Begin to copy a NumPy array, and return what :meth:`take` wants of it."""
        return self.backend.asarray(value, device=self.device)

    def take(self, sent: Any) -> Any:
        """Return the array that was sent: what runs on it from now on finds it whole."""
        return sent

    def mark(self) -> None:
        """Note that nothing uses what was taken before, but for what the device was told so far."""
