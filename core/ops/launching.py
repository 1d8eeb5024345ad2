"""``Launcher``: starts the ranks of an engine's jobs; and the place of a process in its job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..base.table import registry

#: Set for ranks started by ``gradtape train``: ``init`` then prints a header.
TRAINING = "GRADTAPE_TRAINING"
#: Set for these ranks, too: the numbers of a :class:`Place`, with commas between them.
PLACE = "GRADTAPE_PLACE"


class Place(NamedTuple):
    """The rank of this process and the number of processes, in the job and on its host.

    Parameters
    ----------
    rank, size
        The number of this process in the job, from 0, and the number of all processes.
    local_rank, local_size
        The same among the processes of the job on this host.

    Raises
    ------
    TypeError
        If a number is missing.

    Examples
    --------
    >>> from gradtape.plugin import Place
    >>> Place(rank=3, size=4, local_rank=1, local_size=2).local_rank
    1
    """

    rank: int
    size: int
    local_rank: int
    local_size: int


class Launcher:
    """Base class of launchers, which start the ranks of an engine's jobs.

    The hook ``gradtape_launchers`` returns instances, by the engine's name. ``gradtape train
    --engine NAME --ranks N SCRIPT`` starts a job by one, and ``gradtape train SCRIPT`` asks all of
    them whether another program started the process as a rank.

    Examples
    --------
    >>> from gradtape.plugin import Launcher
    >>> class Sockets(Launcher):
    ...     def environments(self, ranks):
    ...         return [{"SOCKETS_ADDRESS": "127.0.0.1:4711"}] * ranks
    """

    provider: Any = None

    _gradtape_internal = "provider"

    def place(self, environment: Mapping[str, str]) -> Place | None:
        """Return the place of a process that a program of this launcher started.

        Parameters
        ----------
        environment
            The environment variables of the process.

        Returns
        -------
        Place or None
            None, the default, if no such program started it.
        """
        return None

    def command(self, ranks: int, program: Sequence[str]) -> Sequence[str] | None:
        """Return the command that runs a program on each rank of this host.

        Parameters
        ----------
        ranks
            The number of ranks.
        program
            The program and its arguments. :meth:`place` must recognise its processes.

        Returns
        -------
        sequence of str or None
            None, the default, if ``gradtape train`` starts the processes itself.

        Raises
        ------
        BackendUnavailable
            If the command is missing. The message says what to install.
        """
        return None

    def environments(self, ranks: int) -> Sequence[Mapping[str, str]]:
        """Return the variables by which the ranks of a job on this host find each other.

        Parameters
        ----------
        ranks
            The number of ranks.

        Returns
        -------
        sequence of mappings
            One for each rank, which ``gradtape train`` adds to the variables of the process that it
            starts. No variables by default: each process can read its rank from :func:`place`.
        """
        return [{}] * ranks


def place(environment: Mapping[str, str] | None = None) -> Place | None:
    """Return this process's place in its job.

    Parameters
    ----------
    environment
        The environment variables of the process; those of this process by default.

    Returns
    -------
    Place or None
        None if no launcher started the process.

    Raises
    ------
    PluginError
        If a launcher of a plugin cannot be imported.

    Examples
    --------
    >>> from gradtape.plugin import place
    >>> place({}) is None
    True
    """
    environment = os.environ if environment is None else environment
    told = environment.get(PLACE, "").split(",")
    if len(told) == len(Place._fields) and all(map(str.isdecimal, told)):
        return Place(*map(int, told))
    for launcher in registry().launchers.values():
        found: Place | None = launcher.place(environment)
        if found is not None:
            return found
    return None
