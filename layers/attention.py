"""Attention: means of values, weighted by how well their keys match queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

import numpy as np

from ..core.extend import Variable, as_tensor, in_precision, ops
from . import initializers
from .base.configured import Configured, positive
from .base.layer import Elsewhere
from .base.weights import Rules
from .basic.linear import EinsumDense
from .configs import serialized
from .dropout import Dropout

__all__ = ["AdditiveAttention", "Attention", "MultiHeadAttention"]


def _masked(scores: Any, mask: Any) -> Any:
    """Return scores that are the lowest number where a mask is false.

    Minus infinity would make NaN of a query for which all keys are left out; its weights are equal.
    """
    return ops["where"](mask, scores, float(np.finfo(scores.dtype).min))


def _causal(scores: Any) -> Any:
    """Return scores with keys after the query's position masked."""
    # one matrix for the whole batch: compiled functions make it once, from its shape alone
    matrix = ops["any"](scores, axis=tuple(range(scores.ndim - 2)))
    return _masked(scores, ops["tril"](ops["ones_like"](matrix)))


class _Dotted(Configured):
    """Base class of layers that take ``[query, value]`` or ``[query, value, key]``."""

    _gradtape_internal = "concat_score_weight scale scores set_dropout"

    _family = """
    Parameters
    ----------
    dropout
        The share of the weights that is dropped while training, 0 by default.
    seed
        A seed for dropout; by default one is drawn from ``gradtape.random``.

    Raises
    ------
    ValueError
        If a setting is out of its range. At the call, if there are not two or three inputs.

    Notes
    -----
    Call the layer with ``[query, value]`` or ``[query, value, key]``. Queries have shape ``(batch,
    queries, size)``, values and keys ``(batch, keys, size)``; the keys are the values by default.
    With ``mask=[query_mask, value_mask]``, values where the mask is false are left out, and results
    for such queries are zero. ``use_causal_mask=True`` leaves out values after the query's
    position. ``return_attention_scores=True`` also returns the weights.
    """

    takes_one = False
    computes_in_float32 = True
    scale: Variable | None = None

    def set_dropout(self, dropout: float, seed: int | None) -> None:
        """Keep the settings of dropout, and create its layer."""
        self.dropout, self.seed = float(dropout), seed
        self.score_dropout = Dropout(dropout, seed, dtype=self.given_dtype) if dropout else None

    def scores(self, query: Any, key: Any) -> Any:
        """Return the score of each key for each query."""
        raise NotImplementedError

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
        training: bool = False,
    ) -> Any:
        """Return the weighted mean of the values for each query."""
        if not isinstance(inputs, (list, tuple)) or len(inputs) not in (2, 3):
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): expected [query, value] or "
                "[query, value, key]"
            )
        query, value, key = inputs if len(inputs) == 3 else (*inputs, inputs[1])
        for x in inputs:
            if (shape := x.array.shape) is not None and len(shape) < 2:
                raise ValueError(
                    f"layer {self.name!r} ({type(self).__name__}): expected inputs of shape "
                    f"(batch, steps, size), got {shape}"
                )
        query_mask, value_mask = (None, None) if mask is None else tuple(mask)[:2]
        scores = self.scores(query, key)
        if value_mask is not None:
            scores = _masked(scores, ops["expand_dims"](as_tensor(value_mask), axis=-2))
        if use_causal_mask:
            scores = _causal(scores)
        weights = ops["softmax"](scores, axis=-1)
        if self.score_dropout is not None:
            weights = self.score_dropout(weights, training=training)
        y = ops["matmul"](weights, value)
        if query_mask is not None:
            y = y * ops["expand_dims"](as_tensor(query_mask), axis=-1).astype(y.dtype)
        return (y, weights) if return_attention_scores else y


class Attention(_Dotted, saved_as="layers.Attention"):
    """Attention by dot products (Luong's).

    Parameters
    ----------
    use_scale
        Whether to multiply scores by a weight; false by default.
    score_mode
        ``"dot"``, the default, for dot products of queries and keys. ``"concat"`` for the sum of
        ``tanh(query + key)``, times a weight.

    References
    ----------
    M.-T. Luong, H. Pham and C. D. Manning, "Effective Approaches to Attention-based Neural Machine
    Translation", EMNLP 2015.

    Examples
    --------
    >>> gt.layers.Attention()([gt.ones((2, 3, 4)), gt.ones((2, 5, 4))]).shape
    (2, 3, 4)
    """

    concat_score_weight: Variable | None = None

    def __init__(
        self,
        use_scale: bool = False,
        score_mode: str = "dot",
        dropout: float = 0.0,
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        if score_mode not in ("dot", "concat"):
            raise ValueError(f"Attention: score_mode must be 'dot' or 'concat', got {score_mode!r}")
        self.use_scale, self.score_mode = bool(use_scale), score_mode
        self.set_dropout(dropout, seed)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The scale, and the weight of the sums, if the layer has them."""
        return ("scale",) * self.use_scale + ("concat_score_weight",) * (self.score_mode != "dot")

    def shape_for_weights(self, shapes: Any) -> Any:
        """Return a shape; the weights depend on none."""
        return ()

    def build(self, input_shape: Any) -> None:
        """Create the weights."""
        for name in self.weight_names:
            setattr(self, name, self.add_weight((), "ones", name))

    def scores(self, query: Any, key: Any) -> Any:
        """Return the score of each key for each query."""
        if self.score_mode == "dot":
            y = ops["matmul"](query, ops["swapaxes"](key, axis1=-2, axis2=-1))
            return y if self.scale is None else y * self.scale.value
        query, key = ops["expand_dims"](query, axis=-2), ops["expand_dims"](key, axis=-3)
        both = query + key if self.scale is None else (query + key) * self.scale.value
        assert self.concat_score_weight is not None
        return ops["sum"](ops["tanh"](both), axis=-1) * self.concat_score_weight.value


class AdditiveAttention(_Dotted, saved_as="layers.AdditiveAttention"):
    """Attention by sums of ``tanh(query + key)`` (Bahdanau's).

    Parameters
    ----------
    use_scale
        Whether each element of the sum has a weight; true by default.

    References
    ----------
    D. Bahdanau, K. Cho and Y. Bengio, "Neural Machine Translation by Jointly Learning to Align and
    Translate", ICLR 2015.

    Examples
    --------
    >>> gt.layers.AdditiveAttention()([gt.ones((2, 3, 4)), gt.ones((2, 5, 4))]).shape
    (2, 3, 4)
    """

    def __init__(
        self,
        use_scale: bool = True,
        dropout: float = 0.0,
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.use_scale = bool(use_scale)
        self.set_dropout(dropout, seed)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The scale, if there is one."""
        return ("scale",) * self.use_scale

    def shape_for_weights(self, shapes: Any) -> Any:
        """Return the shapes of inputs for a scale."""
        return [(None, None, *shapes["scale"])] if "scale" in shapes else None

    def build(self, input_shape: Any) -> None:
        """Create the scale."""
        if self.use_scale:
            size = self.known(input_shape[0])
            self.scale = self.add_weight((size,), "glorot_uniform", "scale")

    def scores(self, query: Any, key: Any) -> Any:
        """Return the score of each key for each query."""
        if self.scale is not None:
            query = self.fitted(query, {-1: self.scale.shape[0]})
        both = ops["tanh"](ops["expand_dims"](query, axis=-2) + ops["expand_dims"](key, axis=-3))
        return ops["sum"](both if self.scale is None else both * self.scale.value, axis=-1)


def _kernels(layer: MultiHeadAttention, arrays: list[Any]) -> list[Any]:
    """Return kernels of projections, which PyTorch keeps as ``(heads * size, inputs)``."""
    return [x.T.reshape(x.shape[1], layer.num_heads, -1) for x in arrays]


def _matrices(layer: MultiHeadAttention, kernels: list[Any]) -> list[Any]:
    size = layer.query_dense.kernel.shape[0]
    for width in (layer.key_dim, layer.value_dim):
        if layer.num_heads * width != size:
            raise ValueError(
                f"in PyTorch, the heads divide the size of the queries, {size}; here there are "
                f"{layer.num_heads} of size {width}"
            )
    return [x.reshape(len(x), -1).T for x in kernels]


def _split_kernels(layer: MultiHeadAttention, arrays: list[Any]) -> list[Any]:
    return _kernels(layer, np.split(arrays[0], 3))


def _joined_matrices(layer: MultiHeadAttention, kernels: list[Any]) -> list[Any] | None:
    alike = len({len(x) for x in kernels}) == 1  # otherwise PyTorch does not join them
    return [np.concatenate(_matrices(layer, kernels))] if alike else None


def _split_biases(layer: MultiHeadAttention, arrays: list[Any]) -> list[Any]:
    return [x.reshape(layer.num_heads, -1) for x in np.split(arrays[0], 3)]


def _joined_biases(layer: MultiHeadAttention, biases: list[Any]) -> list[Any]:
    return [np.concatenate([x.reshape(-1) for x in biases])]


def _last_kernel(layer: MultiHeadAttention, arrays: list[Any]) -> list[Any]:
    """Return the kernel of the result, which PyTorch keeps as ``(outputs, heads * size)``."""
    return [arrays[0].T.reshape(layer.num_heads, -1, len(arrays[0]))]


def _last_matrix(layer: MultiHeadAttention, kernels: list[Any]) -> list[Any]:
    width = kernels[0].shape[-1]
    if layer.query_dense.kernel.shape[0] != width:
        raise ValueError(f"in PyTorch, the result is as wide as the queries; here it is {width}")
    return [kernels[0].reshape(-1, width).T]


def _same(layer: MultiHeadAttention, arrays: list[Any]) -> list[Any]:
    return arrays


_QUERY, _KEY, _VALUE = (f"{x}_dense/kernel" for x in ("query", "key", "value"))
_IN_PYTORCH = {
    (_QUERY, _KEY, _VALUE): (("in_proj_weight",), (_split_kernels, _joined_matrices)),
    # if their inputs have different sizes
    (_QUERY,): (("q_proj_weight",), (_kernels, _matrices)),
    (_KEY,): (("k_proj_weight",), (_kernels, _matrices)),
    (_VALUE,): (("v_proj_weight",), (_kernels, _matrices)),
    ("query_dense/bias", "key_dense/bias", "value_dense/bias"): (
        ("in_proj_bias",),
        (_split_biases, _joined_biases),
    ),
    ("output_dense/kernel",): (("out_proj/weight",), (_last_kernel, _last_matrix)),
    ("output_dense/bias",): (("out_proj/bias",), (_same, _same)),
}


class MultiHeadAttention(Configured, saved_as="layers.MultiHeadAttention"):
    """Attention with several heads, each with its own projections.

    Call it as ``layer(query, value, key)``. By default the keys are the values, and the values the
    queries (self-attention).

    Parameters
    ----------
    num_heads
        The number of heads.
    key_dim
        The size of a head's queries and keys.
    value_dim
        The size of a head's values; ``key_dim`` by default.
    dropout
        The share of the attention weights that is dropped while training, 0 by default.
    use_bias
        Whether projections have biases; true by default.
    output_shape
        The size of the result; that of the queries by default.
    seed
        A seed for dropout; by default one is drawn from ``gradtape.random``.
    rules
        ``kernel_regularizer``, ``bias_regularizer``, ``activity_regularizer``, and constraints: as
        for :class:`Dense`, applied to each projection.

    Attributes
    ----------
    query_dense, key_dense, value_dense, output_dense : EinsumDense
        The projections: kernels of shape ``(size, num_heads, key_dim)``, or ``value_dim``, and
        ``(num_heads, value_dim, output_shape)``.

    Raises
    ------
    ValueError
        If a setting is not positive. At the call, if sizes are unknown or do not fit.

    Notes
    -----
    ``attention_mask`` has shape ``(batch, queries, keys)`` or broadcasts to it. Keys are left out
    where it is false.

    References
    ----------
    A. Vaswani et al., "Attention Is All You Need", NeurIPS 2017.

    Examples
    --------
    >>> layer = gt.layers.MultiHeadAttention(num_heads=2, key_dim=4)
    >>> layer(gt.ones((3, 5, 8)), gt.ones((3, 7, 8))).shape
    (3, 5, 8)
    """

    _gradtape_internal = "masked_arguments"

    keeps_mask = True
    names_elsewhere: ClassVar[Elsewhere] = {"pytorch": _IN_PYTORCH}
    ruled: ClassVar[Mapping[str, str]] = {"kernel": "kernel", "bias": "bias"}
    #: The arguments whose masks the layer takes.
    masked_arguments: ClassVar[tuple[str, ...]] = ("query", "value", "key")

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: int | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        # the last projection applies it to the result; here it would count twice
        self._activity, self.activity_regularizer = self.activity_regularizer, None
        self.num_heads, self.key_dim, self.value_dim = positive(
            self,
            num_heads=num_heads,
            key_dim=key_dim,
            value_dim=key_dim if value_dim is None else value_dim,
        )
        if isinstance(output_shape, Sequence) and len(output_shape) == 1:
            output_shape = output_shape[0]
        self.output_shape = output_shape
        if output_shape is not None:
            (self.output_shape,) = positive(self, output_shape=output_shape)
        self.use_bias = bool(use_bias)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.dropout, self.seed = float(dropout), seed
        self.score_dropout = Dropout(dropout, seed, dtype=self.given_dtype) if dropout else None
        self.query_dense = self._dense("abc,cde->abde", (None, self.num_heads, self.key_dim), "de")
        self.key_dense = self._dense("abc,cde->abde", (None, self.num_heads, self.key_dim), "de")
        self.value_dense = self._dense(
            "abc,cde->abde", (None, self.num_heads, self.value_dim), "de"
        )
        # without output_shape, build makes it as wide as the queries
        self.output_dense = self._dense("abcd,cde->abe", (None, self.output_shape), "e")

    def _dense(self, equation: str, shape: Any, bias_axes: str) -> EinsumDense:
        return EinsumDense(
            equation,
            shape,
            bias_axes=bias_axes if self.use_bias else None,
            kernel_initializer=self.kernel_initializer,
            bias_initializer=self.bias_initializer,
            dtype=self.given_dtype,
            **self.rules_given(),
        )

    def rules_given(self) -> Any:
        """Return the regularizers and constraints of the projections, for the configuration."""
        found = super().rules_given()
        activity = serialized("regularizer", self._activity)
        return found if activity is None else {**found, "activity_regularizer": activity}

    @property
    def built(self) -> bool:
        """Whether the projections are built."""
        parts = (self.query_dense, self.key_dense, self.value_dense, self.output_dense)
        return all(part.built for part in parts)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """Empty: the projections have the weights."""
        return ()

    def build(self, input_shape: Any) -> None:
        """Make the result as wide as the queries, unless ``output_shape`` is set."""
        if self.output_shape is None:
            self.output_dense.output_shape = (None, self.known(input_shape))

    def call(
        self,
        query: Any,
        value: Any = None,
        key: Any = None,
        attention_mask: Any = None,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
        training: bool = False,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
    ) -> Any:
        """Return the weighted means of the values, for queries of shape ``(batch, n, size)``.

        ``query_mask``, ``value_mask`` and ``key_mask`` have shape ``(batch, n)``, and are false
        where a step is padding.
        """
        value_mask = query_mask if value is None else value_mask
        key_mask = value_mask if key is None else key_mask
        value = query if value is None else as_tensor(value)
        key = value if key is None else as_tensor(key)
        for what, x in (("query", query), ("value", value), ("key", key)):
            if (shape := x.array.shape) is not None and len(shape) != 3:
                raise ValueError(
                    f"layer {self.name!r} (MultiHeadAttention): expected a {what} of shape "
                    f"(batch, steps, size), got {shape}"
                )
        q, k, v = (
            ops["swapaxes"](dense(x), axis1=1, axis2=2)  # (batch, heads, n, size)
            for dense, x in (
                (self.query_dense, query),
                (self.key_dense, key),
                (self.value_dense, value),
            )
        )
        q, k = in_precision(q, "float32"), in_precision(k, "float32")  # scores soon leave float16
        scores = ops["matmul"](q, ops["swapaxes"](k, axis1=-2, axis2=-1)) * self.key_dim**-0.5
        if attention_mask is not None:
            mask = as_tensor(attention_mask)
            scores = _masked(scores, ops["expand_dims"](mask, axis=1) if mask.ndim == 3 else mask)
        for mask, axis in ((query_mask, -1), (value_mask, -2), (key_mask, -2)):
            if mask is not None:  # (batch, heads, queries, keys)
                steps = ops["expand_dims"](as_tensor(mask), axis=1)
                scores = _masked(scores, ops["expand_dims"](steps, axis=axis))
        if use_causal_mask:
            scores = _causal(scores)
        weights = ops["softmax"](scores, axis=-1)
        weights = weights.astype(v.dtype) if v.dtype.itemsize < 4 else weights
        dropped = weights
        if self.score_dropout is not None:
            dropped = self.score_dropout(weights, training=training)
        y = self.output_dense(ops["swapaxes"](ops["matmul"](dropped, v), axis1=1, axis2=2))
        return (y, weights) if return_attention_scores else y
