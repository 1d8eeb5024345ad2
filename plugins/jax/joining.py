"""How this process joins a job of JAX, by options, by variables or by its launcher."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ...core.errors import DistributedError
from ...core.extend import Place, place, registry
from .engine import COORDINATOR, COUNT, KNOWN_TO_JAX, LAUNCHER, NUMBER, number

#: How this process joined a job of JAX.
_joined: list[Any] = []
#: Ports that systems do not assign by themselves.
_PORTS = range(20000, 30000)


@dataclass
class Launch:
    """How this process joins its job.

    Parameters
    ----------
    coordinator
        ``"host:port"`` of process 0, where the others connect. By default the environment variable
        ``JAX_COORDINATOR_ADDRESS``, or the address from the launcher.
    num_processes, process_id
        The number of processes, and the number of this one, from 0. By default
        ``JAX_NUM_PROCESSES`` and ``JAX_PROCESS_ID``, then the values from ``mpiexec`` or ``srun``,
        otherwise a single process.
    local_device_ids
        The numbers of the GPUs that this process uses. By default all GPUs; under ``mpiexec`` or
        ``srun`` the one with the process's number on its host.
    devices
        The number of devices that this process uses, from the first on; all by default.
    cpu_devices
        The number of devices into which JAX splits this process's CPU. By default the value of
        ``jax_num_cpu_devices`` or ``XLA_FLAGS``, otherwise one.
    start_timeout
        Seconds that processes wait for each other at the start; 120 by default.
    heartbeat_timeout
        Seconds without a heartbeat after which a process counts as dead; 10 by default.
    """

    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_device_ids: int | list[int] | None = None
    devices: int | None = None
    cpu_devices: int | None = None
    start_timeout: int = 120
    heartbeat_timeout: int = 10

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Launch:
        """Return a launch from options, and from the environment for what is missing."""
        known = [field.name for field in fields(cls)]
        unknown = [name for name in options if name not in known]
        if unknown:
            raise TypeError(
                f"distributed.init: the engine 'jax' has no option {', '.join(unknown)}; its "
                f"options are {', '.join(known)}"
            )
        launch = cls(**options)
        launch._check()
        launch._fill_in()
        return launch

    @property
    def several(self) -> bool:
        """Whether there are other processes."""
        return self.num_processes is not None and self.num_processes > 1

    def _check(self) -> None:
        numbers = ("num_processes", "process_id", "devices", "cpu_devices")
        for name in (*numbers, "start_timeout", "heartbeat_timeout"):
            value, least = getattr(self, name), 0 if name == "process_id" else 1
            if value is None and name in numbers:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(
                    f"distributed.init: {name} must be an integer of at least {least}, "
                    f"got {value!r}"
                )
        if self.coordinator is not None and not _is_address(self.coordinator):
            raise ValueError(
                "distributed.init: coordinator must be 'host:port' of process 0, got "
                f"{self.coordinator!r}"
            )

    def _fill_in(self) -> None:
        """Take what is missing from the environment."""
        self.coordinator = self.coordinator or os.environ.get(COORDINATOR) or None
        if self.num_processes is None:
            self.num_processes = number(COUNT)
        if self.process_id is None:
            self.process_id = number(NUMBER)
        launched = place()
        if self.num_processes is None and launched is not None and launched.size > 1:
            self.num_processes, self.process_id = launched.size, launched.rank
            if self.local_device_ids is None and launched.local_size > 1:
                self.local_device_ids = launched.local_rank
            if self.coordinator is None and not any(name in os.environ for name in KNOWN_TO_JAX):
                self.coordinator = _found(launched)
        elif self.several and self.coordinator is None:
            raise DistributedError(
                f"distributed.init: there are {self.num_processes} processes, and no coordinator; "
                f"pass coordinator='host:port' of process 0, or set {COORDINATOR}"
            )
        if self.several and self.process_id is None:
            raise DistributedError(
                f"distributed.init: there are {self.num_processes} processes, and no number for "
                f"this one; pass process_id=, or set {NUMBER}"
            )
        if self.several and self.process_id not in range(self.num_processes or 1):
            raise DistributedError(
                f"distributed.init: process_id is {self.process_id}; with {self.num_processes} "
                f"processes it must be 0 to {(self.num_processes or 1) - 1}"
            )

    def join(self) -> None:
        """Start JAX's part of the job: collective, and before any other use of JAX."""
        import jax

        if self.cpu_devices is not None:
            self._configure(jax, "jax_num_cpu_devices", self.cpu_devices)
        if not self.several or _joined:  # JAX leaves its job when the process ends
            return
        config: Any = jax.config
        if config.jax_cpu_collectives_implementation is None:
            config.update("jax_cpu_collectives_implementation", "gloo")
        try:
            jax.distributed.initialize(
                coordinator_address=self.coordinator,
                num_processes=self.num_processes,
                process_id=self.process_id,
                local_device_ids=self.local_device_ids,
                initialization_timeout=self.start_timeout,
                heartbeat_timeout_seconds=self.heartbeat_timeout,
                shutdown_timeout_seconds=self.heartbeat_timeout,
            )
        except (RuntimeError, ValueError) as error:
            raise DistributedError(
                f"distributed.init: process {self.process_id} of {self.num_processes} cannot join "
                f"through {self.coordinator or 'its launcher'}: {_first_line(error)}"
            ) from error
        _joined.append(self)

    @staticmethod
    def _configure(jax: Any, name: str, value: Any) -> None:
        if getattr(jax.config, name) == value:
            return
        try:
            jax.config.update(name, value)
        except RuntimeError as error:
            raise DistributedError(
                f"distributed.init: {name} cannot be set to {value}, because JAX is already "
                "running; call init before anything creates JAX arrays"
            ) from error


def _is_address(text: Any) -> bool:
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    return bool(host) and port.isdecimal()


def _found(launched: Place) -> str:
    """Return an address that all processes of an MPI launcher derive by themselves."""
    if launched.local_size == launched.size:
        parent = number(LAUNCHER) or os.getppid()
        return f"127.0.0.1:{_PORTS[parent % len(_PORTS)]}"
    reason = registry().engine("mpi").unavailable()
    if reason is not None:
        raise DistributedError(
            "distributed.init: the launcher started processes on several hosts, and the address of "
            f"the first one is known only through MPI ({reason}); or set {COORDINATOR} to its "
            "'host:port' on all hosts"
        )
    world = registry().engine("mpi").connect()
    import socket  # for jobs only

    with socket.socket() as free:
        free.bind(("", 0))
        own = f"{socket.gethostname()}:{free.getsockname()[1]}"
    address = world.exchange(own.encode())[0].decode()
    world.close()
    return address


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
