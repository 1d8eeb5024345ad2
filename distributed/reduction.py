"""``Reduction``: what makes a single process's training step that of all ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ..core.extend import (
    F,
    ForwardAccumulator,
    GradientTape,
    Graph,
    Symbol,
    Tensor,
    Variable,
    active_graph,
    active_tapes,
    as_tensor,
    flatten,
    ops,
    pack_like,
    unsure,
)

__all__ = ["BUCKET_BYTES", "MEANS", "Reduction", "numbers_of"]

MEANS = ("mean", "sum")
#: As much as PyTorch's DistributedDataParallel sends at once.
BUCKET_BYTES = 25 * 2**20


class Reduction:
    """Makes gradients by variables those of the global batch, and losses its mean.

    It is in force while a step runs, or is traced (``reducing`` of the core).

    Parameters
    ----------
    weight
        By what this rank's losses count, a number or a tensor: its examples, as a share of the
        usual number.
    reduction
        ``"mean"`` if losses are means over examples, ``"sum"`` if they are sums.
    bucket_bytes
        How much goes into one message, where messages go while the rank computes.
    """

    def __init__(
        self, weight: Any = 1.0, reduction: str = "mean", bucket_bytes: int = BUCKET_BYTES
    ) -> None:
        self.bucket_bytes = bucket_bytes
        self.weight = weight if reduction == "mean" else 1.0
        self.mean = reduction == "mean"
        #: Who is told of the variables when gradients are first asked by them.
        self.meet: Callable[[list[Variable]], None] | None = None
        #: What goes along with the next gradients, to be averaged in the same message.
        self.beside: list[Tensor] = []
        #: What went into messages: variables (None without a gradient), and how many numbers.
        self.sent: list[tuple[tuple[Variable | None, ...], int]] = []
        self._means: dict[int, Tensor] = {}

    def weighed(
        self, targets: list[Tensor], seeds: list[Tensor | None], sources: list[Any]
    ) -> list[Tensor | None]:
        """Return the upstream gradients with which this rank's targets count.

        Raises
        ------
        TypeError
            If gradients are asked by variables and by tensors at once, or the target of a mean is
            no number.
        """
        if not self._concerns(sources):
            return seeds
        if self.meet is not None:
            meet, self.meet = self.meet, None
            meet(sources)
        for target in targets:
            if self.mean and target.shape != ():
                raise TypeError(
                    f"gradient: in a data-parallel step the target is a number, the mean over this "
                    f"rank's examples; got shape {target.shape}. Take its mean, or, for a sum over "
                    "examples, say group.data_parallel(step, reduction='sum')"
                )
        if _is_one(self.weight):
            return seeds
        return [
            self.weigh(Tensor(F.ones_like(target.array)) if seed is None else seed)
            for target, seed in zip(targets, seeds, strict=True)
        ]

    def reduced(
        self, targets: list[Tensor], sources: list[Any], grads: list[Tensor | None]
    ) -> list[Tensor | None]:
        """Return the gradients of all ranks, and remember the mean of the targets."""
        if not self._concerns(sources):
            return grads
        if not self.mean and any(map(_differentiates, active_tapes.get())):
            raise TypeError(
                "gradient: in a step with reduction='sum' a gradient of the whole batch cannot be "
                "differentiated again: what depends on it would be summed once for each rank. Take "
                "means over examples, and reduction='mean'"
            )
        held = [x for x in targets if x.dtype.kind == "f"]
        told = [*held, *self.beside]
        known = [g for g in grads if g is not None]
        whose = [v if g is not None else None for v, g in zip(sources, grads, strict=True)]
        self.sent.append((tuple(whose), len(told)))
        like = [*told, *[v for v in whose if v is not None]]
        found = self.averages([*map(self.weigh, told), *known], len(held), like)
        means, rest = found[: len(told)], iter(found[len(told) :])
        self._means.update({x.id: mean for x, mean in zip(told, means, strict=True)})
        self.beside = []
        return [None if g is None else next(rest) for g in grads]

    def mean_of(self, x: Tensor) -> Tensor:
        """Return the mean over the ranks of a target, or of what went along with gradients."""
        return self._means[x.id]

    def refuse(self, method: str, sources: list[Any]) -> None:
        """Raise if Jacobians are asked by variables, which would be those of this rank alone."""
        if any(isinstance(x, Variable) for x in sources):
            raise TypeError(
                f"{method}: in a data-parallel step this would be the Jacobian of this rank's part "
                "of the batch; ask gradient(), which is that of the whole batch, or compute it "
                "outside"
            )

    def averages(
        self, tensors: list[Tensor], checked: int = 0, like: Sequence[Any] | None = None
    ) -> list[Tensor]:
        """Return the means over all ranks of tensors that were multiplied by the weight.

        Parameters
        ----------
        tensors
            They are alike on all ranks, but for their values.
        checked
            How many of them are losses, which have to be finite.
        like
            What has their shapes, which a trace may not know; by default they have themselves.
        """
        if not tensors:
            return []
        graph = active_graph.get()
        buckets = [] if graph is None else self._buckets(like or tensors, checked)
        if graph is None or len(buckets) < 2:
            return list(self._average("average_over_ranks", tensors, checked, mean=self.mean))
        found: list[Any] = [None] * len(tensors)
        counts = [checked, *[0] * (len(buckets) - 1)]
        chosen = [[tensors[i] for i in bucket] for bucket in buckets]
        tickets = [
            self._average("begin_average_over_ranks", given, count, mean=self.mean)
            for given, count in zip(chosen, counts, strict=True)
        ]
        begun_early(graph)
        for bucket, given, count, ticket in zip(buckets, chosen, counts, tickets, strict=True):
            means = self._average("end_average_over_ranks", given, count, ticket, mean=self.mean)
            for i, mean in zip(bucket, means, strict=True):
                found[i] = mean
        return found

    def _average(
        self, name: str, tensors: list[Tensor], checked: int, *before: Any, **params: Any
    ) -> Any:
        return ops[name](*before, self.weight, *tensors, checked=checked, **params)

    def _buckets(self, tensors: Sequence[Any], checked: int) -> list[list[int]]:
        """Return which tensors go into which message: losses first, then from the last one on.

        Gradients of the last layers are there first. One whose size is not known ends a bucket.
        """
        buckets, size = [list(range(checked))], 0
        for i in reversed(range(checked, len(tensors))):
            x = tensors[i]
            shape = x.shape if isinstance(x, Variable) else x.array.shape
            known = shape is not None and not unsure(shape)
            buckets[-1].append(i)
            size += prod(shape) * x.dtype.itemsize if known else self.bucket_bytes
            if size >= self.bucket_bytes:
                buckets.append([])
                size = 0
        return [bucket for bucket in buckets if bucket]

    def results(self, returned: Any) -> Any:
        """Return what a step returns with its numbers averaged over the global batch.

        Raises
        ------
        TypeError
            If something is no floating number.
        """
        leaves = numbers_of(returned)
        waiting = {x.id: x for x in leaves if x is not None and x.id not in self._means}
        self.sent.append(((), len(waiting)))
        found = self.averages([self.weigh(x) for x in waiting.values()])
        self._means.update(zip(waiting, found, strict=True))
        return pack_like(returned, [x if x is None else self._means[x.id] for x in leaves])

    def _concerns(self, sources: list[Any]) -> bool:
        """Return whether gradients are by variables, which all ranks have alike."""
        shared = [isinstance(x, Variable) for x in sources]
        if any(shared) and not all(shared):
            raise TypeError(
                "gradient: in a data-parallel step gradients by variables are those of the whole "
                "batch, and gradients by tensors those of this rank's part; ask for them in two "
                "calls, of a persistent tape"
            )
        return any(shared)

    def weigh(self, x: Tensor) -> Tensor:
        """Return a tensor times this rank's weight."""
        if _is_one(self.weight):
            return x
        weight = self.weight
        weight = ops["cast_like"](weight, x) if isinstance(weight, Tensor) else weight
        return x * weight


def numbers_of(returned: Any) -> list[Any]:
    """Return what a step returns as a flat list of tensors of one floating number, and ``None``.

    Raises
    ------
    TypeError
        If something is no floating number.
    """
    leaves = [as_tensor(x) if isinstance(x, Variable) else x for x in flatten(returned)]
    for x in leaves:
        if x is not None and not (isinstance(x, Tensor) and x.shape == () and x.dtype.kind == "f"):
            got = f"shape {x.shape} and dtype {x.dtype}" if isinstance(x, Tensor) else repr(x)
            raise TypeError(
                "data_parallel: what a step returns is averaged over the ranks, so it is "
                f"floating tensors of one number each; got {got}. "
                "Return means over the batch, or say data_parallel(step, outputs='local') for "
                "what each rank has"
            )
    return leaves


def _differentiates(recorder: Any) -> bool:
    """Return whether a recorder is for derivatives, and not for a trace's closure."""
    return isinstance(getattr(recorder, "root", recorder), (GradientTape, ForwardAccumulator))


def _is_one(weight: Any) -> bool:
    return isinstance(weight, float) and weight == 1.0


def begun_early(graph: Graph) -> None:
    """Move what begins a message to where its last array is made: it is on its way meanwhile."""
    places: dict[Symbol, int] = {}
    order: list[tuple[int, int, Any]] = []
    for place, node in enumerate(graph.nodes):
        key = place
        if getattr(node.op, "name", None) == "begin_average_over_ranks":
            key = max((places.get(x, -1) for x in node.inputs if type(x) is Symbol), default=-1)
        places.update(dict.fromkeys(node.outputs, key))
        order.append((key, place, node))
    graph.nodes[:] = [node for _, _, node in sorted(order, key=lambda item: item[:2])]
