"""``Reduction``: turns the gradients and losses of one rank into those of all ranks."""

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
    has_unknown_sizes,
    ops,
    pack_like,
)

MEANS = ("mean", "sum")
#: As much as PyTorch's DistributedDataParallel sends at once.
BUCKET_BYTES = 25 * 2**20


class Reduction:
    """Reduces gradients with respect to variables, and losses, over the global batch.

    It is active while a step runs or is traced (``reducing`` of the core).

    Parameters
    ----------
    weight
        The weight of this rank's losses, a number or a tensor: its number of examples divided by
        the usual number.
    reduction
        ``"mean"`` if losses are means over examples, ``"sum"`` if they are sums.
    bucket_bytes
        The most bytes of one message, if messages are sent while the rank computes.
    """

    def __init__(
        self, weight: Any = 1.0, reduction: str = "mean", bucket_bytes: int = BUCKET_BYTES
    ) -> None:
        self.bucket_bytes = bucket_bytes
        self.weight = weight if reduction == "mean" else 1.0
        self.mean = reduction == "mean"
        #: Called with the variables before their gradients are first computed.
        self.meet: Callable[[list[Variable]], None] | None = None
        #: Scalars to average in the same message as the next gradients.
        self.companions: list[Tensor] = []
        #: The contents of messages: variables (None without a gradient), and the number of scalars.
        self.sent: list[tuple[tuple[Variable | None, ...], int]] = []
        self._means: dict[int, Tensor] = {}

    def weighed(
        self, targets: list[Tensor], seeds: list[Tensor | None], sources: list[Any]
    ) -> list[Tensor | None]:
        """Return the upstream gradients of this rank's targets, multiplied by its weight.

        Raises
        ------
        TypeError
            If sources include both variables and tensors, or the target of a mean is not a scalar.
        """
        if not self._concerns(sources):
            return seeds
        if self.meet is not None:
            meet, self.meet = self.meet, None
            meet(sources)
        for target in targets:
            if self.mean and target.shape != ():
                raise TypeError(
                    f"gradient: in a data-parallel step the target must be a scalar, the mean over "
                    f"this rank's examples; got shape {target.shape}. Take its mean or, for a sum "
                    "over examples, pass reduction='sum' to group.data_parallel"
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
        """Return the gradients of the whole batch, and remember the means of the targets."""
        if not self._concerns(sources):
            return grads
        if not self.mean and any(map(_differentiates, active_tapes.get())):
            raise TypeError(
                "gradient: in a step with reduction='sum' a gradient of the whole batch cannot be "
                "differentiated again: its contribution would be summed once for each rank. Take "
                "means over examples, and use reduction='mean'"
            )
        held = [x for x in targets if x.dtype.kind == "f"]
        told = [*held, *self.companions]
        known = [g for g in grads if g is not None]
        whose = [v if g is not None else None for v, g in zip(sources, grads, strict=True)]
        self.sent.append((tuple(whose), len(told)))
        like = [*told, *[v for v in whose if v is not None]]
        found = self.averages([*map(self.weigh, told), *known], len(held), like)
        means, rest = found[: len(told)], iter(found[len(told) :])
        self._means.update({x.id: mean for x, mean in zip(told, means, strict=True)})
        self.companions = []
        return [None if g is None else next(rest) for g in grads]

    def mean_of(self, x: Tensor) -> Tensor:
        """Return the mean over the whole batch of a target, or of a scalar sent with gradients."""
        return self._means[x.id]

    def refuse(self, method: str, sources: list[Any]) -> None:
        """Raise for a Jacobian with respect to variables, which would cover only this rank."""
        if any(isinstance(x, Variable) for x in sources):
            raise TypeError(
                f"{method}: in a data-parallel step this would be the Jacobian of this rank's part "
                "of the batch. Use gradient(), which covers the whole batch, or compute it outside "
                "the step"
            )

    def averages(
        self, tensors: list[Tensor], checked: int = 0, like: Sequence[Any] | None = None
    ) -> list[Tensor]:
        """Return the means over all ranks of tensors that were multiplied by the weight.

        Parameters
        ----------
        tensors
            The tensors, with the same shapes and dtypes on all ranks.
        checked
            The number of losses, which come first and must be finite.
        like
            Objects with the shapes of the tensors, if a trace does not know these.
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
        """Return the messages as lists of positions: losses first, then gradients from the last on.

        Gradients of the last layers are computed first. One of unknown size ends a bucket.
        """
        buckets, size = [list(range(checked))], 0
        for i in reversed(range(checked, len(tensors))):
            x = tensors[i]
            shape = x.shape if isinstance(x, Variable) else x.array.shape
            known = shape is not None and not has_unknown_sizes(shape)
            buckets[-1].append(i)
            size += prod(shape) * x.dtype.itemsize if known else self.bucket_bytes
            if size >= self.bucket_bytes:
                buckets.append([])
                size = 0
        return [bucket for bucket in buckets if bucket]

    def results(self, returned: Any) -> Any:
        """Return a step's results, averaged over the global batch.

        Raises
        ------
        TypeError
            If a result is not a floating scalar.
        """
        leaves = numbers_of(returned)
        waiting = {x.id: x for x in leaves if x is not None and x.id not in self._means}
        self.sent.append(((), len(waiting)))
        found = self.averages([self.weigh(x) for x in waiting.values()])
        self._means.update(zip(waiting, found, strict=True))
        return pack_like(returned, [x if x is None else self._means[x.id] for x in leaves])

    def _concerns(self, sources: list[Any]) -> bool:
        """Return whether the sources are variables, which are the same on all ranks."""
        shared = [isinstance(x, Variable) for x in sources]
        if any(shared) and not all(shared):
            raise TypeError(
                "gradient: in a data-parallel step gradients with respect to variables are those "
                "of the whole batch, and gradients with respect to tensors those of this rank's "
                "part. Call gradient() once for each, on a persistent tape"
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
    """Return a step's results as a flat list of floating scalar tensors and ``None``.

    Raises
    ------
    TypeError
        If a result is not a floating scalar.
    """
    leaves = [as_tensor(x) if isinstance(x, Variable) else x for x in flatten(returned)]
    for x in leaves:
        if x is not None and not (isinstance(x, Tensor) and x.shape == () and x.dtype.kind == "f"):
            got = f"shape {x.shape} and dtype {x.dtype}" if isinstance(x, Tensor) else repr(x)
            raise TypeError(
                "data_parallel: a step's results are averaged over the ranks, so they must be "
                f"floating tensors of shape (); got {got}. Return means over the batch, or pass "
                "outputs='local' to data_parallel for each rank's own results"
            )
    return leaves


def _differentiates(recorder: Any) -> bool:
    """Return whether a recorder computes derivatives, rather than a trace's closure."""
    return isinstance(getattr(recorder, "root", recorder), (GradientTape, ForwardAccumulator))


def _is_one(weight: Any) -> bool:
    return isinstance(weight, float) and weight == 1.0


def begun_early(graph: Graph) -> None:
    """Move the start of each message to where its last array is computed, to overlap them."""
    places: dict[Symbol, int] = {}
    order: list[tuple[int, int, Any]] = []
    for place, node in enumerate(graph.nodes):
        key = place
        if getattr(node.op, "name", None) == "begin_average_over_ranks":
            key = max((places.get(x, -1) for x in node.inputs if type(x) is Symbol), default=-1)
        places.update(dict.fromkeys(node.outputs, key))
        order.append((key, place, node))
    graph.nodes[:] = [node for _, _, node in sorted(order, key=lambda item: item[:2])]
