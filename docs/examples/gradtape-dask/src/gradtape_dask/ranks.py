"""The communicator, and ``run``, which starts a job: each rank is a task on a worker of its own.

Ranks exchange messages by Dask's named variables, which pass through the scheduler: enough for
small models, and for a cluster that has nothing else.
"""

from contextlib import suppress

import numpy as np
from distributed import Variable

import gradtape as gt
from gradtape.errors import DistributedError
from gradtape.plugin import Communicator

from . import task


class DaskCommunicator(Communicator):
    """The ranks of a job; all collectives are made of :meth:`exchange`."""

    engine = "dask"

    def __init__(self, job, rank, size):
        self.job, self.rank, self.size, self.step = job, rank, size, 0
        self.failure = Variable(job)  # set by a rank that fails

    def mail(self, step, rank):
        return Variable(f"{self.job}/{step}/{rank}")

    def receive(self, rank):
        while True:
            with suppress(TimeoutError):
                return self.mail(self.step, rank).get(timeout=1)
            with suppress(TimeoutError):
                raise DistributedError(self.failure.get(timeout=0.1))

    def exchange(self, message):
        self.mail(self.step, self.rank).set(message)
        found = [self.receive(rank) for rank in range(self.size)]
        if self.step:  # every rank has sent this message, so all have read the last one
            self.mail(self.step - 1, self.rank).delete()
        self.step += 1
        return found

    def all_gather(self, array):
        parts = self.exchange(array.tobytes())
        return np.stack([np.frombuffer(x, array.dtype).reshape(array.shape) for x in parts])

    def all_reduce(self, array, reduction="sum"):
        return np.asarray(getattr(self.all_gather(array), reduction)(axis=0), array.dtype)

    def broadcast(self, array, root=0):
        return np.array(self.all_gather(array)[root])

    def barrier(self):
        self.exchange(b"")

    def abort(self, reason, code=1):
        raise DistributedError(reason)


def rank_of_job(function, job, rank, size):
    """Run one rank, in its task; return its result, and the number of messages that it sent."""
    joined = DaskCommunicator(job, rank, size)
    task.set(joined)
    try:
        gt.distributed.init("dask")
        return function(), joined.step
    except BaseException as error:
        joined.failure.set(f"rank {rank} failed: {error!r}")
        raise
    finally:
        gt.distributed.shutdown()
        task.set(None)


def run(client, function):
    """Run a function as a job, one rank on each worker; return the results of all ranks."""
    job, workers = Variable(client=client).name, list(client.nthreads())
    if not workers:
        raise ValueError("gradtape_dask.ranks.run: the cluster has no workers")
    tasks = [
        client.submit(rank_of_job, function, job, rank, len(workers), workers=[place], pure=False)
        for rank, place in enumerate(workers)
    ]
    found = client.gather(tasks)
    for rank, (_, steps) in enumerate(found):
        Variable(f"{job}/{steps - 1}/{rank}", client=client).delete()  # the last message
    return [result for result, _ in found]
