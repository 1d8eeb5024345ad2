"""What computes: a backend, an executor, and an engine of ranks that are processes."""

from __future__ import annotations

from typing import Any

#: A backend for arrays of a library; the template has the array API standard's reference one.
BACKEND: dict[str, Any] = {
    "what": "A backend",
    "provides": ("backend", "$name"),
    "limit": ",<$next",
    "needs": ', "array-api-strict>=2.3"',
    "use": """\
import gradtape as gt

with gt.backend("$name"):
    x = gt.constant([1.0, 4.0])
assert gt.grad(lambda x: gt.sum(gt.sqrt(x)))(x).to("numpy").tolist() == [0.5, 0.25]
""",
    "files": {
        "src/$module/__init__.py": '''\
"""A backend for gradtape: with gt.backend("$name"): ..., tensor.to("$name")."""

from .plugin import BACKEND

__all__ = ["BACKEND"]
''',
        "src/$module/plugin.py": '''\
"""The backend of one array library: put yours in the place of array_api_strict.

A library that implements the array API standard needs no kernels of its own.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gradtape.plugin import Backend, BackendUnavailable, hookimpl

$api


class Arrays(Backend):
    """Arrays of array_api_strict, the reference implementation of the standard."""

    name = "$name"
    array_module = "array_api_strict"  # arrays whose types are defined there are its own

    @property
    def xp(self) -> Any:
        """The namespace that kernels are given; gradtape starts fast, so import it here."""
        try:
            import array_api_strict
        except ImportError as error:
            raise BackendUnavailable(
                f"backend '$name': {error}; pip install array-api-strict"
            ) from error
        return array_api_strict

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        """Return a new array, never the memory of another one."""
        return self.xp.asarray(np.array(value, dtype=dtype), copy=True)

    def to_numpy(self, array: Any) -> Any:
        """Return the value in host memory."""
        return np.from_dlpack(array)


BACKEND = Arrays()


@hookimpl
def gradtape_backends() -> Sequence[Backend]:
    return [BACKEND]
''',
        "tests/test_backend.py": '''\
"""check_backend: the samples of all ops, their gradients and the functions built on them."""

import gradtape as gt
import pytest
from gradtape.testing import check_backend

#: What the library computes otherwise than NumPy, with the reason; empty this list if you can.
DIFFERENT = {}


@pytest.mark.parametrize("traced", [False, True])
def test_ops_functions_and_their_gradients_are_as_on_numpy(traced):
    report = check_backend("$name", traced=traced)
    assert set(report.wrong) == set(DIFFERENT)
    assert len(report.passed) > 250  # the others are refused: the library lacks a function


def test_a_model_computes_on_the_backend():
    with gt.backend("$name"):
        model = gt.layers.Dense(3, activation="tanh")
        assert model(gt.ones((2, 4))).device == "$name:cpu"


$found
''',
    },
}

#: An executor, which decides how traced functions run.
EXECUTOR: dict[str, Any] = {
    "what": "An executor",
    "provides": ("executor", "$name"),
    "limit": ",<$next",
    "use": """\
import gradtape as gt


@gt.function(executor="$name")
def f(x):
    return gt.sin(x) * 2.0


assert f(gt.ones(3)).shape == (3,)
assert "steps: " in f.explain(gt.ones(3))
""",
    "files": {
        "src/$module/__init__.py": '''\
"""An executor for gradtape: gt.function(f, executor="$name")."""

from .plugin import executor

__all__ = ["executor"]
''',
        "src/$module/plugin.py": '''\
"""The executor. It makes a list of steps of a graph, once for each backend, and runs it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradtape.plugin import (
    Backend,
    Graph,
    Read,
    argument_of,
    by_backend,
    hookimpl,
    kernel_of,
    local_constants,
    set_arrays,
)

$api


def compiler(program: Graph, owner: Backend, arrays: Sequence[Any]) -> Callable[..., Any]:
    """Return a function that runs a program on arrays of one backend."""
    kernels = [
        None if isinstance(node.op, Read) else kernel_of(node, owner) for node in program.nodes
    ]

    def run(arrays: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = dict(local_constants(program, arrays))
        known.update(zip(program.inputs, arrays, strict=True))
        for node, kernel in zip(program.nodes, kernels, strict=True):
            if kernel is None:
                results = [node.op.variable.array]  # type: ignore[union-attr]
            else:
                result = kernel(
                    *[known[x] if x in known else argument_of(node, x, owner) for x in node.inputs]
                )
                results = result if node.several else [result]
            known.update(zip(node.outputs, results, strict=True))
        new = [known[symbol] for symbol in program.updates.values()]
        for variable, array in zip(program.updates, new, strict=True):
            variable.check_shape(array.shape)  # the trace may not have known it
        set_arrays(list(program.updates), new)
        return [known[symbol] for symbol in program.outputs]

    run.explain = lambda: f"steps: {len(kernels)}"  # type: ignore[attr-defined]
    return run


def executor(graph: Graph) -> Callable[..., Any]:
    """Return a function that runs a graph on arrays of any backend."""
    return by_backend(graph, compiler)


@hookimpl
def gradtape_executors() -> Mapping[str, Callable[..., Any]]:
    return {"$name": executor}
''',
        "tests/test_executor.py": '''\
"""check_executor: programs of all kinds give what gradtape's plain executor gives."""

import gradtape as gt
from gradtape.testing import check_executor


def test_programs_run_as_they_do_plainly():
    report = check_executor("$name", ulps=0)
    assert not report.wrong and not report.refused


def test_a_model_trains():
    v = gt.Variable([1.0, 2.0])

    @gt.function(executor="$name")
    def step():
        with gt.GradientTape() as tape:
            loss = gt.sum(v * v)
        v.assign_sub(0.5 * tape.gradient(loss, v))
        return loss

    assert step().item() == 5.0
    assert v.tolist() == [0.0, 0.0]


$found
''',
    },
}

#: An engine: ranks that are processes, connected by sockets.
ENGINE: dict[str, Any] = {
    "what": "An engine",
    "provides": ("collective", "$name"),
    "limit": ",<$next",
    "use": """\
import gradtape as gt

group = gt.distributed.init("$name")  # by default a group of one; see src/$module/plugin.py
assert group.all_reduce(gt.constant([1.0])).tolist() == [1.0]
""",
    "files": {
        "src/$module/__init__.py": '''\
"""An engine for gradtape: gt.distributed.init("$name")."""

from .plugin import ENGINE

__all__ = ["ENGINE"]
''',
        "src/$module/plugin.py": '''\
"""The engine, and the launcher with which ``gradtape train --engine $name`` starts its ranks.

Ranks are processes whose environment has ``RANK``, ``SIZE`` and ``PORT``.

Rank 0 listens at the port of this machine, collects the messages of all ranks, and sends them back.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Client, Connection, Listener
from time import monotonic, sleep
from typing import Any

import numpy as np
from gradtape.plugin import Communicator, Engine, Launcher, hookimpl

$api

#: The names of the environment variables of a rank, and how long to wait for the others.
RANK, SIZE, PORT = ("${MODULE}_RANK", "${MODULE}_SIZE", "${MODULE}_PORT")
SECONDS = 60.0


class Ranks(Communicator):
    """The ranks of a job. All collectives are made of :meth:`exchange`."""

    engine = "$name"

    def __init__(self, rank: int, size: int, port: int) -> None:
        self.rank, self.size = rank, size
        self.links: list[Connection[Any, Any]] = []
        if size == 1:
            return
        address = ("127.0.0.1", port)
        if rank:
            self.links = [_connected(address)]
            self.links[0].send_bytes(str(rank).encode())
            return
        with Listener(address, backlog=size) as listener:
            found = [listener.accept() for _ in range(size - 1)]
        self.links = sorted(found, key=lambda link: int(link.recv_bytes()))

    def exchange(self, message: bytes) -> list[bytes]:
        """Return the messages of all ranks, by rank."""
        if self.rank:
            self.links[0].send_bytes(message)
            received = self.links[0].recv_bytes()
            ends = np.frombuffer(received, np.int64, self.size).cumsum() + 8 * self.size
            return [received[i:j] for i, j in zip([8 * self.size, *ends[:-1]], ends, strict=True)]
        messages = [message, *(link.recv_bytes() for link in self.links)]
        lengths = np.array([len(each) for each in messages], np.int64)
        for link in self.links:  # one packet for each rank: several small ones would wait
            link.send_bytes(b"".join([lengths.tobytes(), *messages]))
        return messages

    def all_gather(self, array: Any) -> Any:
        """Return the arrays of all ranks, in a new first axis."""
        parts = self.exchange(array.tobytes())
        return np.stack([np.frombuffer(x, array.dtype).reshape(array.shape) for x in parts])

    def all_reduce(self, array: Any, reduction: str = "sum") -> Any:
        """Return the sum, minimum or maximum: in the order of ranks, so all have the same bits."""
        found = getattr(self.all_gather(array), reduction)(axis=0)
        return np.asarray(found, array.dtype)

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """Return the array of one rank."""
        return np.array(self.all_gather(array)[root])

    def barrier(self) -> None:
        """Wait until every rank has called this."""
        self.exchange(b"")

    def close(self) -> None:
        """Leave the job."""
        for link in self.links:
            link.close()


def _connected(address: tuple[str, int]) -> "Connection[Any, Any]":
    """Return a connection to rank 0, which may not listen yet."""
    end = monotonic() + SECONDS
    while True:
        try:
            return Client(address)
        except ConnectionRefusedError:
            if monotonic() > end:
                raise
            sleep(0.01)


class SocketEngine(Engine):
    """Connects ranks by sockets."""

    name = "$name"

    def launched(self) -> bool:
        """Return whether the environment has a rank."""
        return RANK in os.environ

    def connect(self, **options: Any) -> Communicator:
        """Join the job; without a rank in the environment, a group of one."""
        given = os.environ.get
        return Ranks(int(given(RANK, 0)), int(given(SIZE, 1)), int(given(PORT, 0)))


class SocketLauncher(Launcher):
    """Tells the ranks of a job on this host where to find each other."""

    def environments(self, ranks: int) -> Sequence[Mapping[str, str]]:
        """Return the variables of each rank."""
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = str(found.getsockname()[1])
        return [{RANK: str(rank), SIZE: str(ranks), PORT: port} for rank in range(ranks)]


ENGINE = SocketEngine()


@hookimpl
def gradtape_collectives() -> Sequence[Engine]:
    return [ENGINE]


@hookimpl
def gradtape_launchers() -> Mapping[str, Launcher]:
    return {"$name": SocketLauncher()}
''',
        "tests/test_engine.py": '''\
"""check_engine: every collective, on one, two and three ranks; and a job of two processes."""

import subprocess
import sys
from threading import Lock

import gradtape as gt
from gradtape.testing import check_engine

from $module import ENGINE
from $module.plugin import PORT, Ranks, SocketLauncher

PROGRAM = """
import gradtape as gt

group = gt.distributed.init()
x = gt.constant([1.0, float(group.rank)])
text = f"{group.engine} {group.all_reduce(x).tolist()} {group.all_gather(x).tolist()}"
print(f"{text}\\\\n", end="")  # at once, since both ranks print
gt.distributed.shutdown()
"""


def test_every_collective():
    ports, lock = {}, Lock()

    def connect(rank, size):
        with lock:
            port = ports.setdefault(size, SocketLauncher().environments(size)[0][PORT])
        return Ranks(rank, size, int(port))

    report = check_engine(ENGINE, connect=connect)
    assert not report.wrong


def test_a_job_of_two_processes(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "gradtape", "train", "--engine", "$name", "--ranks", "2"]
    done = subprocess.run(
        [*command, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["$name [2.0, 1.0] [[1.0, 0.0], [1.0, 1.0]]"] * 2


$found
''',
    },
}
