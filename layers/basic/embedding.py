"""``Embedding``: a row of weights for each integer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from ...core.extend import Variable, as_tensor, ops, to_numpy
from ...nn import embedding_lookup
from .. import initializers
from ..base.configured import Configured, positive
from ..base.layer import Elsewhere
from ..base.losses import Rules

__all__ = ["Embedding"]


class Embedding(Configured, saved_as="layers.Embedding"):
    """A vector of weights for each integer.

    Parameters
    ----------
    input_dim
        The number of integers, which go from 0 to ``input_dim - 1``.
    output_dim
        The length of a vector.
    embeddings_initializer
        A name, an object of :mod:`gradtape.layers.initializers`, or a function of shape and dtype;
        ``"uniform"`` between -0.05 and 0.05 by default.
    mask_zero
        Whether 0 is padding. In a model, recurrent and attention layers after this one skip it, and
        so do losses and metrics if the mask reaches the output. Elsewhere, pass the result of
        :meth:`compute_mask` to layers as ``mask=``.
    dtype
        The dtype of the weights, ``float32`` by default.

    Attributes
    ----------
    embeddings : Variable
        Shape ``(input_dim, output_dim)``; created at the first call.

    Raises
    ------
    ValueError
        If a dimension is not positive.
    TypeError
        At the call, if the inputs are not integers.
    IndexError
        At the call, if an integer is out of range, such as a negative one.

    Examples
    --------
    >>> gt.layers.Embedding(10, 4)([[1, 2, 3]]).shape
    (1, 3, 4)
    """

    takes_integers = True

    #: :meth:`compute_mask` is asked in models.
    makes_mask: ClassVar[bool] = True
    names_elsewhere: ClassVar[Elsewhere] = {"pytorch": {"embeddings": ("weight", None)}}

    embeddings: Variable
    ruled: ClassVar[Mapping[str, str]] = {"embeddings": "embeddings"}

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        mask_zero: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.input_dim, self.output_dim = positive(self, input_dim=input_dim, output_dim=output_dim)
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self.mask_zero = bool(mask_zero)

    @property
    def built(self) -> bool:
        """Whether the weights exist."""
        return "embeddings" in vars(self)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The vectors."""
        return ("embeddings",)

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return any shape: it makes no difference."""
        return (None,)

    def build(self, input_shape: Any) -> None:
        """Make the weights."""
        shape = (self.input_dim, self.output_dim)
        self.embeddings = self.add_weight(shape, self.embeddings_initializer, "embeddings")

    def compute_mask(self, ids: Any, mask: Any = None) -> Any:
        """Return where integers are not padding; ``None`` without ``mask_zero``."""
        return ops["not_equal"](as_tensor(ids), 0) if self.mask_zero else None

    def call(self, ids: Any) -> Any:
        """Look up integers of any shape."""
        if ids.dtype.kind not in "iu":
            raise TypeError(
                f"layer {self.name!r} (Embedding): expected integers, got {ids.dtype}; cast them "
                "with .astype('int32')"
            )
        try:
            rows = ids
            if ids.dtype.kind == "i":  # a negative one would count from the end
                rows = ops["embedding_rows"](ids.astype("int64"), count=self.input_dim)
            return embedding_lookup(self.embeddings.value, rows)
        except IndexError as error:
            raise IndexError(self._outside(ids) or str(error)) from None

    def _outside(self, ids: Any) -> str:
        """Describe the integers that are out of range; empty if they have no values here."""
        if not hasattr(ids.array, "__array__") and not hasattr(ids.array, "__dlpack__"):
            return ""
        values = to_numpy(ids.array)
        outside = values[(values < 0) | (values >= self.input_dim)]
        return (
            f"layer {self.name!r} (Embedding): expected integers from 0 to {self.input_dim - 1} "
            f"(input_dim is {self.input_dim}), got {outside[0]}; {outside.size} of {values.size} "
            "are out of bounds"
        )
