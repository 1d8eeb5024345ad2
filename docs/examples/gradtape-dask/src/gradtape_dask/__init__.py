"""Ranks of a job as tasks of a Dask cluster: the engine. :mod:`gradtape_dask.ranks` has the rest.

gradtape imports this module at each start, so it does not import Dask.
"""

from contextvars import ContextVar
from importlib.util import find_spec

from gradtape.plugin import BackendUnavailable, Engine, hookimpl

#: The communicator of a task that :func:`gradtape_dask.ranks.run` started.
task = ContextVar("gradtape_dask_task", default=None)


class DaskEngine(Engine):
    """What ``gt.distributed.init()`` finds in a task of a job."""

    name = "dask"

    def unavailable(self):
        return None if find_spec("distributed") else "engine 'dask': pip install distributed"

    def launched(self):
        return task.get() is not None

    def connect(self, **options):
        if not self.launched():
            raise BackendUnavailable("engine 'dask': start the job with gradtape_dask.ranks.run")
        return task.get()


@hookimpl
def gradtape_collectives():
    return [DaskEngine()]
