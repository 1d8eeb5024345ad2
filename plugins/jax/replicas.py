"""Variables with a copy on every device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary
from zlib import crc32

import numpy as np

from ...core.extend import Variable, set_arrays, to_numpy
from .compiling import references

if TYPE_CHECKING:
    from .communicator import JaxCommunicator


def checksum(array: Any, start: int = 0) -> int:
    """Return a checksum of the values of arrays."""
    host = np.ascontiguousarray(to_numpy(array)).reshape(-1)
    return crc32(host.view(np.uint8).data, start)


class Replica:
    """The copies of a variable's array.

    The variable itself holds the copy on this process's first device. Eager code, files and other
    backends use it like any array, without the other processes.
    """

    __slots__ = ("__weakref__", "view", "whole")

    def __init__(self) -> None:
        self.view: Any = None
        self.whole: Any = None

    def hold(self, whole: Any) -> Any:
        """Store the array on all devices, and return the copy on the first one."""
        self.whole = whole
        self.view = whole.addressable_data(0) if whole.sharding.num_devices > 1 else whole
        return self.view


class Replicas:
    """The variables that are on all devices, with their arrays.

    Parameters
    ----------
    group
        The group that has the devices.
    """

    def __init__(self, group: JaxCommunicator) -> None:
        self._group = group
        #: By the variables' ids; programs keep them alive.
        self._of: WeakValueDictionary[int, Replica] = WeakValueDictionary()
        probe = Replica()
        probe.hold(group.put(np.zeros(1), group.everywhere, (1,)))
        #: The number of references to an array that only a variable and its replica hold.
        self.alone = references(probe.view)

    def of(self, variable: Variable) -> Replica:
        """Return the replica of a variable, which is empty at first."""
        found = self._of.get(variable.id)
        if found is None:
            found = self._of[variable.id] = Replica()
        return found

    def first(self, variables: Sequence[Variable]) -> None:
        """Put variables on all devices with the values of process 0; collective.

        The values have been found equal on all processes, except for streams of random numbers:
        these need not have equal seeds, and continue as those of process 0.
        """
        group = self._group
        arrays = [np.ascontiguousarray(to_numpy(variable.array)) for variable in variables]
        if group.size > 1:
            flat = np.concatenate([array.reshape(-1).view(np.uint8) for array in arrays])
            flat = group.broadcast(flat)
            ends = np.cumsum([array.nbytes for array in arrays])
            arrays = [
                part.view(array.dtype).reshape(array.shape)
                for part, array in zip(np.split(flat, ends[:-1]), arrays, strict=True)
            ]
        self._place(variables, arrays)

    def again(self, variables: Sequence[Variable]) -> str:
        """Put variables that were written since then on all devices; describe their values."""
        arrays = [np.ascontiguousarray(to_numpy(variable.array)) for variable in variables]
        self._place(variables, arrays)
        pairs = zip(variables, arrays, strict=True)
        return ", ".join(f"{v.name!r} as {checksum(array):08x}" for v, array in pairs)

    def _place(self, variables: Iterable[Variable], arrays: Iterable[Any]) -> None:
        for variable, array in zip(variables, arrays, strict=True):
            whole = self._group.put(
                array, self._group.everywhere, array.shape, alias=False
            )  # XLA may write into it
            # the same value on other devices: a tape need not record it
            set_arrays([variable], [self.of(variable).hold(whole)])
