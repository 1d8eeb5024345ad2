"""The JAX engine: the devices of one or many processes run one program over the whole batch.

The processes of a job find each other by options, variables or their launcher.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...core.extend import (
    BackendUnavailable,
    Communicator,
    Engine,
    Launcher,
    hookimpl,
    lazy_module,
    registry,
)

# -- how processes find each other -----------------------------------------------------------------


#: The variables of processes started by hand: coordinator, number of processes, own number.
COORDINATOR, COUNT, NUMBER = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"
#: With these variables of SLURM and Open MPI, JAX finds the coordinator by itself.
KNOWN_TO_JAX = ("SLURM_STEP_NODELIST", "OMPI_MCA_orte_hnp_uri")
#: The variable of the process that started a host's ranks, if it is not their parent.
LAUNCHER = "GRADTAPE_LAUNCHER"


def named() -> bool:
    """Return whether the environment names a coordinator and several processes."""
    return bool(os.environ.get(COORDINATOR)) and (number(COUNT) or 1) > 1


def number(name: str) -> int | None:
    """Return the number in an environment variable; None if it holds none."""
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None


class JaxLauncher(Launcher):
    """Processes on this host, which find each other through a coordinator."""

    def environments(self, ranks: int) -> list[dict[str, str]]:
        """Return the coordinator's address, with a port that is free now."""
        import socket  # for jobs only

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return [{COORDINATOR: f"127.0.0.1:{free.getsockname()[1]}"}] * ranks


@hookimpl(trylast=True)
def gradtape_launchers() -> dict[str, Launcher]:
    """Provide the launcher of the engine ``"jax"``."""
    return {"jax": JaxLauncher()}


# -- the engine ------------------------------------------------------------------------------------


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
        return named()

    def connect(self, **options: Any) -> Communicator:
        """Join the processes of a job, if there are several, and use all their devices.

        Parameters
        ----------
        options
            The options of :class:`gradtape.plugins.jax.joining.Launch`.

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
        launch = lazy_module("plugins.jax.joining").Launch.of(options)
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
