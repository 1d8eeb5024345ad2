"""An engine over plain sockets and its launcher, as a package of a third party: the plugin."""

import os
import pickle
import socket
import time
from multiprocessing.connection import Client, Listener

import numpy as np

import gradtape as gt
from gradtape.plugin import Communicator, Engine, Launcher, place

ADDRESS = "WIRES_PORT"


class Wires(Communicator):
    """A star: rank 0 receives what all ranks have, and sends all of it to each."""

    engine = "wires"
    watched = True

    def __init__(self, rank, size, port):
        self.rank, self.size = rank, size
        if rank == 0:
            with Listener(("127.0.0.1", port)) as listener:
                others = [listener.accept() for _ in range(size - 1)]
            self.others = dict(sorted((wire.recv(), wire) for wire in others))
        else:
            self.others = {0: _connected(port)}
            self.others[0].send(rank)

    def exchange(self, message):
        if self.rank:
            self.others[0].send_bytes(message)
            return pickle.loads(self.others[0].recv_bytes())
        found = [message, *(wire.recv_bytes() for wire in self.others.values())]
        for wire in self.others.values():
            wire.send_bytes(pickle.dumps(found))
        return found

    def all_gather(self, array):
        rows = [np.frombuffer(x, array.dtype) for x in self.exchange(array.tobytes())]
        return np.stack([row.reshape(array.shape) for row in rows])

    def all_reduce(self, array, reduction="sum"):
        return getattr(np, reduction)(self.all_gather(array), axis=0).astype(array.dtype)

    def reduce_in_place(self, array):
        array[...] = self.all_reduce(array)

    def start_in_place(self, array):
        self.reduce_in_place(array)
        return lambda: None

    def broadcast(self, array, root=0):
        return self.all_gather(array)[root]

    def barrier(self):
        self.exchange(b"")


def _connected(port):
    until = time.monotonic() + 30
    while True:
        try:
            return Client(("127.0.0.1", port))
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


class WiresEngine(Engine):
    name = "wires"

    def launched(self):
        return ADDRESS in os.environ

    def connect(self):
        here = place()
        return Wires(here.rank, here.size, int(os.environ[ADDRESS]))


class WiresLauncher(Launcher):
    def environments(self, ranks):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return [{ADDRESS: str(free.getsockname()[1])}] * ranks


@gt.hookimpl
def gradtape_collectives():
    return [WiresEngine()]


@gt.hookimpl
def gradtape_launchers():
    return {"wires": WiresLauncher()}
