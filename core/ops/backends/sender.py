"""``Sender``: copies arrays from host memory to a device while the device may be computing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backend import Backend


class Sender:
    """Copies arrays to a device; in this base class the copy is done when :meth:`send` returns.

    A backend whose device computes while Python continues returns its own from
    ``Backend.sender``.

    Parameters
    ----------
    backend
        The device's backend.
    device
        The device, without the backend's name.

    Examples
    --------
    >>> from gradtape.plugin import Sender
    >>> sender = Sender(gt.registry().backend("numpy"), None)
    >>> sender.take(sender.send(np.ones(2))).tolist()
    [1.0, 1.0]
    """

    def __init__(self, backend: Backend, device: str | None) -> None:
        self.backend, self.device = backend, device

    def send(self, value: Any) -> Any:
        """Start to copy a NumPy array, and return the argument for :meth:`take`."""
        return self.backend.asarray(value, device=self.device)

    def take(self, sent: Any) -> Any:
        """Return the array that was sent: kernels that start from now on see all of it."""
        return sent

    def mark(self) -> None:
        """Note that only kernels already queued on the device use arrays that were taken before."""
