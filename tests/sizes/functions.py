"""Functions that compute with sizes, as one would write them: the table of ``test_functions``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt

GENERATOR = gt.random.Generator(7)


class Case(NamedTuple):
    """A function, and what it takes.

    ``shapes`` has a name in the place of each open size; ``integers`` tells which inputs hold
    indices, by position, and the number or size that these stay below.
    """

    function: Callable[..., Any]
    shapes: tuple[tuple[Any, ...], ...]
    integers: dict[int, int | str]
    refused: tuple[int, ...]  # the sizes that the eager function refuses

    @property
    def random(self) -> bool:
        return "GENERATOR" in self.function.__code__.co_names

    def inputs(self, n: int, dtype: str = "float64", examples: int | None = None) -> list[Any]:
        """Return arrays for size ``n``: what is called ``m`` has one more, ``k`` twice as many."""
        draw = np.random.default_rng(n)
        names = {"n": n, "m": n + 1, "k": 2 * n, "q": 4 * n}
        front = () if examples is None else (examples,)
        found: list[Any] = []
        for i, dims in enumerate(self.shapes):
            shape = front + tuple(names.get(d, d) for d in dims)
            if i in self.integers:
                bound = self.integers[i]
                found.append(draw.integers(0, names.get(bound, bound), shape))
            else:
                found.append((0.3 + 0.5 * draw.standard_normal(shape)).astype(dtype))
        return found

    def specs(self, dtype: str = "float64", examples: bool = False) -> list[gt.TensorSpec]:
        """Return a signature that leaves the sizes open which have names."""
        front = [None] if examples else []
        return [
            gt.TensorSpec(
                [*front, *(None if isinstance(d, str) else d for d in dims)],
                "int64" if i in self.integers else dtype,
            )
            for i, dims in enumerate(self.shapes)
        ]


CASES: dict[str, Case] = {}


def takes(
    *shapes: tuple[Any, ...],
    integers: dict[int, int | str] | None = None,
    refused: tuple[int, ...] = (),
) -> Callable[[Any], Any]:
    """Enter a function of inputs of these shapes into the table."""

    def enter(function: Any) -> Any:
        CASES[function.__name__] = Case(function, shapes, integers or {}, refused)
        return function

    return enter


# -- sums divided by counts ------------------------------------------------------------------------


@takes(("n", 3))
def mean_by_hand(x):
    return gt.sum(x, axis=0) / x.shape[0]


@takes(("n", 3))
def unbiased_variance(x):
    n = x.shape[0]
    centred = x - gt.sum(x, axis=0) / n
    return gt.sum(centred**2, axis=0) / (n - 1)


@takes(("n", 3))
def standard_error(x):
    return gt.std(x, axis=0) / x.shape[0] ** 0.5


@takes(("n", "m"))
def mean_of_all(x):
    return gt.sum(x) / x.size


@takes(("n", 3), refused=(0,))
def weight_of_each(x):
    weight = 1 / x.shape[0]
    return weight * gt.tanh(x)


@takes(("n", 3), ("n", 2))
def cross_covariance(x, y):
    n = x.shape[0]
    x = x - gt.sum(x, axis=0) / n
    y = y - gt.sum(y, axis=0) / n
    return gt.transpose(x) @ y / (n - 1)


@takes(("n", 3))
def batch_statistics(x):
    count, features = x.shape
    mean = gt.sum(x, axis=0) / count
    variance = gt.sum((x - mean) ** 2, axis=0) / count
    return (x - mean) / gt.sqrt(variance + 1e-2) + gt.zeros((count, features), x.dtype)


@takes(("n", 4, 4, "m"))
def mean_over_pixels(x):
    b, h, w, c = x.shape
    return gt.sum(gt.reshape(x, (b, h * w, c)), axis=1) / (h * w)


@takes(("n", 3))
def loss_per_example(x):
    return gt.sum(x**2, axis=0) / gt.maximum(x.shape[0], 1)


@takes(("n",))
def information_criterion(x):
    n = x.shape[0]
    return n * gt.log(gt.mean(x**2)) + 3 * gt.log(gt.cast(n, x.dtype))


# -- attention, masks, positions -------------------------------------------------------------------


@takes(("n", 3, "m"), ("n", 3, "m"))
def scaled_scores(q, k):
    return gt.nn.softmax(q @ gt.swapaxes(k, 1, 2) / q.shape[-1] ** 0.5)


@takes((2, "n", 3))
def causal_attention(x):
    t = x.shape[1]
    scores = x @ gt.swapaxes(x, 1, 2) * x.shape[-1] ** -0.5
    mask = gt.tril(gt.ones((t, t)))
    scores = gt.where(mask == 0, -1e9, scores)
    return gt.nn.softmax(scores) @ x


@takes(("n", 3))
def causal_by_positions(x):
    t = x.shape[0]
    mask = gt.arange(t)[:, None] >= gt.arange(t)
    return gt.where(mask, x @ gt.transpose(x), 0.0)


@takes(("n", "m"))
def upper_triangle(x):
    return gt.sum(gt.triu(gt.ones(x.shape, x.dtype), 1) * x, axis=-1)


@takes((2, "n", 4))
def sinusoidal_positions(x):
    t, d = x.shape[1], x.shape[2]
    position = gt.arange(t, dtype=x.dtype)[:, None]
    rate = gt.exp(-gt.arange(0, d, 2, dtype=x.dtype) * (np.log(100.0) / d))
    return x + gt.concatenate([gt.sin(position * rate), gt.cos(position * rate)], axis=1)


@takes((2, "n", "k"))
def positions_of_an_open_width(x):
    _, t, d = x.shape
    i = gt.arange(d // 2, dtype=x.dtype)
    angles = gt.arange(t, dtype=x.dtype)[:, None] / 100.0 ** (2 * i / d)
    return x * gt.concatenate([gt.sin(angles), gt.cos(angles)], axis=-1)


@takes((2, "n", 3), (9, 3))
def learned_positions(x, table):
    return x * table[: x.shape[1]]


@takes((2, "n", 3), (9, 3))
def looked_up_positions(x, table):
    return x * gt.gather(table, gt.arange(x.shape[1]))


@takes((4, "n", "n"))
def relative_bias(scores):
    t = scores.shape[-1]
    distance = gt.abs(gt.arange(t)[:, None] - gt.arange(t)[None, :])
    return scores - gt.cast(distance, scores.dtype) / t


@takes(("n", "m", 2), ("n",), integers={1: 4})
def padding_mask(x, lengths):
    mask = gt.arange(x.shape[1]) < lengths[:, None]
    return gt.sum(gt.where(mask[:, :, None], x, 0.0), axis=1)


@takes((2, "n", 6))
def heads_apart_and_together(x):
    b, t, d = x.shape
    heads = gt.transpose(gt.reshape(x, (b, t, 2, d // 2)), (0, 2, 1, 3))
    mixed = gt.nn.softmax(heads @ gt.swapaxes(heads, 2, 3) / (d // 2) ** 0.5) @ heads
    return gt.reshape(gt.transpose(mixed, (0, 2, 1, 3)), (b, t, d))


# -- states, loops, choices ------------------------------------------------------------------------


@takes((4, "n", 3))
def recurrence_from_zeros(x):
    def step(h, row):
        h = gt.tanh(row + 0.5 * h)
        return h, h

    state = gt.zeros((x.shape[1], 3), x.dtype)
    last, outputs = gt.scan(step, state, x)
    return last, outputs


@takes(("n", 3))
def recurrence_by_length(x):
    def step(h, _):
        return gt.sin(h + 1.0), h

    return gt.scan(step, x, None, length=x.shape[0])


@takes(("n", 3))
def loop_up_to_a_size(x):
    n = x.shape[0]

    def body(i, total):
        return i + 1, total + gt.sin(total + x[i])

    return gt.while_loop(lambda i, total: i < n, body, (0, gt.zeros(3, x.dtype)))[1]


@takes(("n", 3))
def branch_by_size(x):
    return gt.cond(x.shape[0] > 2, lambda: gt.sin(x), lambda: x * x)


@takes(("n", 3))
def choice_by_size(x):
    return gt.where(x.shape[0] == 1, x, 2.0 * x)


@takes(("n",))
def all_but_the_last(x):
    n = x.shape[0]
    return gt.where(gt.arange(n) < n - 1, gt.exp(x), 0.0)


@takes(("n", 3))
def discounts(x):
    n = x.shape[0]
    return x * (0.9 ** gt.arange(n, dtype=x.dtype))[:, None]


# -- random draws ----------------------------------------------------------------------------------


@takes(("n", 3), ("n", 3))
def sampling_layer(mean, log_variance):
    noise = GENERATOR.normal(mean.shape, dtype=mean.dtype)
    return mean + gt.exp(0.5 * log_variance) * noise


@takes(("n", 3))
def noise_for_each_row(x):
    return x * GENERATOR.uniform((x.shape[0], 1), 0.5, 1.5, dtype=x.dtype)


@takes(("n", 3))
def dropout_by_hand(x):
    keep = GENERATOR.bernoulli((x.shape[0], 3), 0.8)
    return gt.where(keep, x / 0.8, 0.0)


# -- lengths that are made even, padded, cut -------------------------------------------------------


@takes(("n", 3))
def padded_to_a_multiple(x):
    missing = -x.shape[0] % 4
    return gt.pad(x, ((0, missing), (0, 0)))


@takes(("n", 3))
def padded_rows_in_blocks(x):
    n = x.shape[0]
    padded = gt.concatenate([x, gt.zeros(((-n) % 4, 3), x.dtype)])
    return gt.sum(gt.reshape(padded, ((n + 3) // 4, 4, 3)) ** 2, axis=1)


@takes((2, "n"))
def padded_to_a_length(x):
    return gt.pad(x, ((0, 0), (0, 8 - x.shape[1])), constant_values=1.0)


@takes(("n", 3))
def halves(x):
    n = x.shape[0]
    return x[: n // 2], x[n // 2 :]


@takes((2, "k"))
def gated_halves(x):
    half = x.shape[-1] // 2
    return x[:, :half] * gt.nn.sigmoid(x[:, half:])


@takes(("k", 3))
def split_in_two(x):
    a, b = gt.split(x, 2)
    return a * gt.sin(b)


@takes(("n", 3))
def split_at_a_size(x):
    n = x.shape[0]
    a, b = gt.split(x, [n // 2])
    return gt.sum(a, axis=0) - gt.sum(b**2, axis=0)


@takes(("n", 3))
def even_and_odd_rows(x):
    return gt.sin(x[::2]), gt.cos(x[1::2])


@takes(("n", 3))
def every_third(x):
    return x[1::3] * x.shape[0]


@takes(("n", 3))
def reversed_first_half(x):
    n = x.shape[0]
    return gt.concatenate([x[: n // 2][::-1], gt.flip(x[n // 2 :], 0) * 2.0])


@takes(("n", 3))
def from_the_end(x):
    n = x.shape[0]
    return x[n - n // 2 :] - x[: n // 2]


@takes(("n", 3), refused=(0,))
def last_row(x):
    return x[x.shape[0] - 1] ** 2


@takes(("n", 3), refused=(0,))
def middle_row(x):
    return gt.sin(x[x.shape[0] // 2])


@takes(("n", "m"), refused=(0,))
def corner(x):
    rows, columns = x.shape
    return x[rows - 1, columns // 2] * x[-rows, 0]


@takes(("n", 3))
def differences(x):
    return x[1:] - x[: x.shape[0] - 1]


# -- reshapes, patches, repeated rows --------------------------------------------------------------


@takes(("n", 2, 3), refused=(0,))
def flattened(x):
    return gt.reshape(x, (x.shape[0], -1)) @ gt.ones((6, 2), x.dtype)


@takes(("n", "m", 3))
def rows_of_all(x):
    b, t, d = x.shape
    return gt.reshape(gt.sin(gt.reshape(x, (b * t, d))), (b, t, d))


@takes((2, "k", "q", 3))
def patches(x):
    b, h, w, c = x.shape
    parts = gt.reshape(x, (b, h // 2, 2, w // 2, 2, c))
    return gt.reshape(gt.transpose(parts, (0, 1, 3, 2, 4, 5)), (b, h // 2 * (w // 2), 4 * c))


@takes(("n", "k", "k", 2))
def pixels_shuffled(x):
    b, h, w, c = x.shape
    x = gt.reshape(x, (b, h // 2, 2, w // 2, 2, c))
    return gt.sum(x**2, axis=(2, 4)) / 4


@takes(("k", 3))
def pairs_of_rows(x):
    return gt.reshape(x, (x.shape[0] // 2, 2, 3))[:, 0] * 2.0


@takes((3,), ("n", 2))
def one_row_for_each(bias, x):
    n = x.shape[0]
    return gt.broadcast_to(bias, (n, 2, 3)) * gt.expand_dims(x, -1)


@takes((3,), ("n", 2))
def tiled_context(context, x):
    rows = gt.tile(gt.expand_dims(context, 0), (x.shape[0], 1))
    return gt.concatenate([x, gt.tanh(rows)], axis=1)


@takes((1, 3), ("n", 2))
def repeated_context(context, x):
    return gt.sum(gt.repeat(context, x.shape[0], axis=0), axis=1) * x[:, 0]


@takes(("n", 3), ("m", 3))
def all_pairs(x, y):
    n, m = x.shape[0], y.shape[0]
    left = gt.repeat(x, m, axis=0)
    right = gt.tile(y, (n, 1))
    return gt.reshape(gt.sum((left - right) ** 2, axis=1), (n, m))


@takes(("n", 3))
def class_token_in_front(x):
    token = gt.full((1, 3), 0.5, dtype=x.dtype) * x.shape[0]
    return gt.concatenate([token, x])


@takes(("n", 3))
def upsampled_twice(x):
    n = x.shape[0]
    return gt.reshape(gt.broadcast_to(x[:, None], (n, 2, 3)), (2 * n, 3))


# -- labels, identity matrices, contrasts ----------------------------------------------------------


@takes((5, "m"), (5,), integers={1: "m"})
def cross_entropy_by_one_hot(logits, labels):
    target = gt.one_hot(labels, depth=logits.shape[1], dtype=logits.dtype)
    return -gt.sum(target * gt.nn.log_softmax(logits)) / logits.shape[0]


@takes((5, "m"), (5,), integers={1: "m"})
def smoothed_labels(logits, labels):
    depth = logits.shape[-1]
    target = 0.9 * gt.one_hot(labels, depth, logits.dtype) + 0.1 / depth
    return -gt.mean(gt.sum(target * gt.nn.log_softmax(logits), axis=-1))


@takes(("n", 3))
def ridge(x):
    gram = x @ gt.transpose(x)
    return gram + 0.1 * gt.eye(x.shape[0], dtype=x.dtype)


@takes(("n", 3))
def contrastive_loss(x):
    n = x.shape[0]
    unit = x / gt.sqrt(gt.sum(x**2, axis=1, keepdims=True) + 0.1)
    similar = unit @ gt.transpose(unit) - 10.0 * gt.eye(n, dtype=x.dtype)
    neighbour = (gt.arange(n) + 1) % n
    target = gt.one_hot(neighbour, n, x.dtype)
    return -gt.sum(target * gt.nn.log_softmax(similar)) / n


@takes(("n", 3), ("n", 3))
def matched_pairs(x, y):
    n = x.shape[0]
    similar = gt.nn.log_softmax(x @ gt.transpose(y))
    return -gt.sum(gt.where(gt.eye(n) == 1, similar, 0.0)) / n


@takes(("n", 3))
def next_row(x):
    n = x.shape[0]
    return x * gt.gather(x, (gt.arange(n) + 1) % n)


@takes(("n", "n"))
def symmetric_with_unit_diagonal(x):
    n = x.shape[0]
    return (x + gt.transpose(x)) / 2 * (1 - gt.eye(n, dtype=x.dtype)) + gt.eye(n, dtype=x.dtype)


@takes(("n", "n"))
def without_the_diagonal(x):
    n = x.shape[0]
    return gt.sum(gt.where(gt.eye(n) == 1, 0.0, x)) / (n * (n - 1) + 1)


# -- windows, weights, shifts ----------------------------------------------------------------------


@takes(("n",))
def moving_average(x):
    n = x.shape[0]
    sums = gt.concatenate([gt.zeros(2, x.dtype), gt.cumsum(x)])
    return (sums[2 : n + 2] - sums[:n]) / 2


@takes(("n", 2))
def running_mean(x):
    return gt.cumsum(x, axis=0) / (gt.arange(x.shape[0], dtype=x.dtype)[:, None] + 1)


@takes(("n", 2))
def rising_weights(x):
    return gt.linspace(0.0, 1.0, x.shape[0], dtype=x.dtype)[:, None] * x


@takes(("n", 2))
def hann_window(x):
    n = x.shape[0]
    phase = 2 * np.pi * gt.arange(n, dtype=x.dtype) / n
    return (0.5 - 0.5 * gt.cos(phase))[:, None] * x


@takes(("n", 2))
def shifted_by_half(x):
    return gt.sin(gt.roll(x, x.shape[0] // 2, axis=0))


@takes(("n", 2))
def rotated_halves(x):
    half = x.shape[0] // 2
    return gt.concatenate([-x[half:], x[:half]]) * x


@takes((2, "n", 3), (3, 3, 2))
def windows_of_a_sequence(x, filters):
    y = gt.nn.conv1d(x, filters, padding="same")
    return gt.sum(y, axis=1) / y.shape[1]


@takes((1, "q", 3))
def pooled_then_flat(x):
    y = gt.nn.avg_pool1d(x, 2)
    return gt.reshape(y, (1, y.shape[1] * 3))


@takes(("n", 3))
def top_half(x):
    ordered = gt.sort(x, axis=0)
    return gt.sum(ordered[x.shape[0] // 2 :], axis=0) / (x.shape[0] - x.shape[0] // 2)


@takes(("n", 3), ("m", 3))
def joined_lengths(x, y):
    both = gt.concatenate([x, y])
    n, m = x.shape[0], y.shape[0]
    return both * m / (n + m), both[n:] - y


@takes(("n", 3), ("n", 3))
def interleaved(x, y):
    n, d = x.shape
    return gt.reshape(gt.stack([x, y], axis=1), (2 * n, d))


@takes(("n", "m"))
def gradient_of_the_mean(x):
    with gt.GradientTape() as tape:
        tape.watch(x)
        loss = gt.sum(gt.sin(x)) / x.size
    return tape.gradient(loss, x) * x.shape[0]


@takes(("n", 3))
def kernel_of_each_row(x):
    n = x.shape[0]
    return gt.vmap(lambda row: gt.sum(row * row) / row.shape[0] + n)(x)


# -- derivatives within the function ---------------------------------------------------------------


@takes(("n", 3))
def jacobian_within(x):
    return gt.jacobian(lambda y: gt.sin(gt.sum(y, axis=1)) * y[:, 0] / y.shape[0])(x)


@takes(("n", 2))
def hessian_within(x):
    return gt.hessian(lambda y: gt.sum(gt.sin(y) * gt.flip(y, 0)) * y.shape[0])(x)


@takes(("n", 2))
def forward_jacobian_within(x):
    return gt.jacfwd(lambda y: gt.cos(y[::2]) / (y.shape[0] + 1))(x)


@takes(("n", "m"))
def jacobian_of_each_example(x):
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sin(x) * gt.sum(x, axis=1, keepdims=True) / x.shape[1]
    return tape.batch_jacobian(y, x)


@takes(("n", 3), ("m",))
def one_vector_and_back(x, y):
    vector, apart = gt.flatten({"x": x, "y": y})
    back = apart(gt.sin(vector) / vector.shape[0])
    return back["x"] * 2.0, back["y"]
