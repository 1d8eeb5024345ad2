"""The JAX engine: the devices of one or many processes run one program over the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.extend import BackendUnavailable, Communicator, Engine, registry
from . import launching


class JaxEngine(Engine):
    """The engine ``"jax"``: all devices that JAX finds, in all processes of the job."""

    name = "jax"

    def unavailable(self) -> str | None:
        """Return what to install if JAX is missing."""
        try:
            registry().backend("jax").xp  # noqa: B018  # it imports JAX
        except BackendUnavailable as error:
            return str(error)
        return None

    def launched(self) -> bool:
        """Return whether the environment holds JAX's coordinator and several processes."""
        return launching.named()

    def connect(self, **options: Any) -> Communicator:
        """Join the processes of a job, if there are several, and use all their devices.

        Parameters
        ----------
        options
            The options of :class:`gradtape.plugins.jax.launching.Launch`.

        Raises
        ------
        BackendUnavailable
            If JAX is missing. The message says what to install.
        DistributedError
            If JAX was used before, the job cannot be joined, or processes have different numbers
            of devices.
        TypeError
            If an option is unknown.
        """
        reason = self.unavailable()
        if reason is not None:
            raise BackendUnavailable(reason)
        launch = launching.Launch.of(options)
        launch.join()
        from .communicator import JaxCommunicator

        return JaxCommunicator(launch)

    def diagnosis(self) -> Sequence[str]:
        """Return the versions of JAX, and the devices of this process."""
        from importlib.metadata import version

        import jax

        config: Any = jax.config
        kinds = [f"{d.platform}:{d.id} ({d.device_kind})" for d in jax.local_devices()]
        return (
            f"JAX {jax.__version__} with jaxlib {version('jaxlib')}",
            f"devices here: {', '.join(kinds)}",
            f"between processes on CPUs: {config.jax_cpu_collectives_implementation}",
        )
