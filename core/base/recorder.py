"""``Recorder``: the base of all that hear of ops while they run, gradient tapes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from ..tensors.op import Op
    from ..tensors.tensor import Tensor
    from ..tensors.variable import Variable

__all__ = ["Everything", "Recorder"]


class Everything(dict[int, Any]):
    """The records of a recorder to which every tensor matters."""

    def __contains__(self, id: object) -> bool:
        return True


class Recorder:
    """Hears of ops, variables and broken gradient paths while it is active; ignores all of it.

    Attributes
    ----------
    records
        What is followed, by the id of its tensor. An op tells a recorder only if one of its inputs
        is in here.
    wants_ops
        Whether every such op must be told by :meth:`record`. Where not, quick ops add the record of
        the commonest case to ``records`` themselves.
    asks_where
        Whether it wants to know at which record a backward pass is (``context.running``).
    reads
        What it follows of variables, by their id: the array that was read, and the id of the tensor
        that was made of it. Used where nobody else looks on; None where every read is a new tensor.
    """

    records: dict[int, Any]
    wants_ops = True
    asks_where = False
    reads: dict[int, tuple[Any, int]] | None = None

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} is neither copied nor pickled, since what it holds is of the "
            "code that ran under it here; send gradients, or run that code where they are needed"
        )

    def record(
        self, op: Op, inputs: tuple[Any, ...], output: Tensor, params: dict[str, Any]
    ) -> None:
        """Hear of a run of ``op`` with one output."""

    def record_joint(
        self, op: Op, inputs: tuple[Any, ...], outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        """Hear of a run of an op with several outputs, or with one rule for all inputs."""

    def record_call(
        self,
        name: str,
        inputs: list[Tensor],
        outputs: list[Tensor],
        backward: Callable[[list[Any]], Sequence[Any]],
    ) -> None:
        """Hear of a computation whose gradient is the function ``backward``."""

    def record_break(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], why: str) -> None:
        """Hear that gradients stop here, and why."""

    def accessed(self, variable: Variable, read: Tensor) -> None:
        """Hear that a variable was read, and that ``read`` is its value."""

    def changing(self, variable: Variable, before: Any) -> None:
        """Hear that a variable is about to be assigned, and the array that it held."""
