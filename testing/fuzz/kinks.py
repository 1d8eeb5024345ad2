"""Kinks, infinities and zeros: what an op's gradients are where a slope is not one number.

It imports nothing, so that whoever measures another library can read it without gradtape.
``docs/make_kinks.py`` makes docs/kinks.md of it; the fuzzer ``traps`` takes its points as known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["KINKS", "Interval", "Kink"]

INF = float("inf")
NEG, NAN = -INF, float("nan")


@dataclass(frozen=True)
class Interval:
    """Any slope from ``low`` to ``high`` is a subgradient: each is right in its way."""

    low: float
    high: float


@dataclass(frozen=True)
class Kink:
    """A call at a point.

    Attributes
    ----------
    call, jax, tensorflow
        The call as text, of ``x``, in each library; ``""`` where there is none.
    at
        The point, a number or nested lists.
    first, second
        The right slope, and the slope of the sum of slopes: numbers, an :class:`Interval` of
        subgradients, or None where there is none.
    reason
        Why that is right, and, where ours is another, why it is so on purpose.
    on_purpose
        Whether ours is another on purpose.
    """

    call: str
    jax: str
    tensorflow: str
    at: Any
    first: Any
    second: Any
    reason: str
    on_purpose: bool = False


def _same(
    name: str,
    at: Any,
    first: Any,
    second: Any,
    reason: str,
    tf: str = "tf.math",
    on_purpose: bool = False,
) -> Kink:
    other = f"{tf}.{name}(x)" if tf else ""
    return Kink(f"gt.{name}(x)", f"jnp.{name}(x)", other, at, first, second, reason, on_purpose)


def _nn(name: str, at: Any, first: Any, second: Any, reason: str, other: str = "") -> Kink:
    tf = f"tf.nn.{name}(x)" if other != "-" else ""
    jax = "" if name == "soft_shrink" else f"jax.nn.{name.replace('softsign', 'soft_sign')}(x)"
    return Kink(f"gt.nn.{name}(x)", jax, tf, at, first, second, reason)


_MIDDLE = "the slopes from either side are -1 and 1: the middle one"
_SIDES = "any slope between those from either side"
_COMPOSED = (
    "a rule sees one op at a time: each factor has slope 0 at its kink, and so has the slope of "
    "their product. Write x * x or gt.square(x)"
)
_CONSTANT = "constant beyond"
_PARTS = (
    "constant beyond; at infinities the first order alone is looked after: the second is 0 · ∞, "
    "of parts of the rule"
)
_ROOT = "it rises vertically there"

_NAN = "where there is nan, to what is nan"
_FAR = "inf / inf, of parts of the rule: the value is infinite too, and says so"
_JUMP = "it jumps: 0, as everywhere else"

KINKS: list[Kink] = [
    # where two straight lines meet
    _same("abs", 0.0, Interval(-1, 1), 0.0, _MIDDLE),
    Kink(
        "gt.abs(x) * gt.abs(x)",
        "jnp.abs(x) * jnp.abs(x)",
        "tf.abs(x) * tf.abs(x)",
        0.0,
        0.0,
        2.0,
        _COMPOSED,
        True,
    ),
    _same("sign", 0.0, None, None, _JUMP),
    Kink(
        "gt.maximum(x, 0.0)",
        "jnp.maximum(x, 0.0)",
        "tf.maximum(x, tf.zeros_like(x))",
        0.0,
        Interval(0, 1),
        0.0,
        "a tie goes to the first, as TensorFlow has it",
    ),
    Kink(
        "gt.minimum(x, 0.0)",
        "jnp.minimum(x, 0.0)",
        "tf.minimum(x, tf.zeros_like(x))",
        0.0,
        Interval(0, 1),
        0.0,
        "a tie goes to the first, as TensorFlow has it",
    ),
    Kink(
        "gt.maximum(x, x)",
        "jnp.maximum(x, x)",
        "tf.maximum(x, x)",
        1.5,
        1.0,
        0.0,
        "it is x: what the two get adds up",
    ),
    Kink(
        "gt.clip(x, 0.0, 1.0)",
        "jnp.clip(x, 0.0, 1.0)",
        "tf.clip_by_value(x, tf.zeros_like(x), tf.ones_like(x))",
        0.0,
        Interval(0, 1),
        0.0,
        "a bound still counts as inside",
    ),
    Kink(
        "gt.max(x)",
        "jnp.max(x)",
        "tf.reduce_max(x)",
        [2.0, 2.0, 1.0],
        Interval(0, 1),
        0.0,
        "what is tied shares the slope of 1",
    ),
    Kink(
        "gt.median(x)",
        "jnp.median(x)",
        "",
        [2.0, 2.0, 1.0],
        Interval(0, 1),
        0.0,
        "what is tied: the one that sorting puts in the middle",
    ),
    Kink(
        "gt.sum(gt.sort(x) * gt.constant([0.0, 1.0]))",
        "jnp.sum(jnp.sort(x) * jnp.array([0.0, 1.0]))",
        "tf.reduce_sum(tf.sort(x) * tf.constant([0.0, 1.0], x.dtype))",
        [2.0, 2.0],
        Interval(0, 1),
        0.0,
        "of tied elements the last stays last",
    ),
    _nn("relu", 0.0, Interval(0, 1), 0.0, "0, as everyone's"),
    _nn("relu6", 0.0, Interval(0, 1), 0.0, _SIDES),
    _nn("relu6", 6.0, Interval(0, 1), 0.0, _SIDES),
    _nn("leaky_relu", 0.0, Interval(0, 1), 0.0, _SIDES),
    _nn("elu", 0.0, 1.0, Interval(0, 1), "smooth but for its second derivative"),
    _nn("celu", 0.0, 1.0, Interval(0, 1), "as elu", "-"),
    _nn("selu", 0.0, Interval(1.05, 1.7581), Interval(0, 1.7581), _SIDES),
    _nn("softsign", 0.0, 1.0, Interval(-2, 2), "1 / (1 + |x|)²: its slope has a kink"),
    _nn("hard_sigmoid", 3.0, Interval(0, 1 / 6), 0.0, _SIDES, "-"),
    _nn("hard_tanh", 1.0, Interval(0, 1), 0.0, _SIDES, "-"),
    _nn("soft_shrink", 0.5, Interval(0, 1), 0.0, _SIDES, "-"),
    Kink(
        "gt.nn.huber(labels=0.0 * x, predictions=x, delta=1.0)",
        "",
        "",
        1.0,
        1.0,
        Interval(0, 1),
        "its slope has a kink where the line begins",
    ),
    # norms and roots
    Kink(
        "gt.linalg.norm(x)",
        "jnp.linalg.norm(x)",
        "tf.norm(x)",
        [0.0, 0.0],
        Interval(-1, 1),
        None,
        "the middle of all slopes; 0 keeps training alive where others give nan",
    ),
    Kink(
        "gt.linalg.norm(gt.stack([x, x])) ** 2",
        "jnp.linalg.norm(jnp.stack([x, x])) ** 2",
        "tf.norm(tf.stack([x, x])) ** 2",
        0.0,
        0.0,
        4.0,
        _COMPOSED + " of the elements",
        True,
    ),
    Kink("gt.hypot(x, 0.0)", "jnp.hypot(x, 0.0)", "", 0.0, Interval(-1, 1), None, "as norm"),
    Kink(
        "gt.std(x)",
        "jnp.std(x)",
        "tf.math.reduce_std(x)",
        [2.0, 2.0],
        Interval(-0.5, 0.5),
        None,
        "as norm, of the distances from the mean",
    ),
    Kink(
        "gt.linalg.norm(x, 'nuc')",
        "jnp.linalg.norm(x, 'nuc')",
        "tf.reduce_sum(tf.linalg.svd(x, compute_uv=False))",
        [[0.0, 0.0], [0.0, 0.0]],
        Interval(-1, 1),
        None,
        "as norm, of the singular values",
    ),
    _same("sqrt", 0.0, INF, None, _ROOT),
    Kink("gt.cbrt(x)", "jnp.cbrt(x)", "", 0.0, INF, None, _ROOT),
    Kink("x ** 0.5", "x ** 0.5", "x ** 0.5", 0.0, INF, None, _ROOT),
    Kink("x ** 1.5", "x ** 1.5", "x ** 1.5", 0.0, 0.0, INF, "its slope is a root"),
    Kink(
        "gt.sqrt(gt.square(x))",
        "jnp.sqrt(jnp.square(x))",
        "tf.sqrt(tf.square(x))",
        0.0,
        Interval(-1, 1),
        None,
        "a rule sees one op at a time: 0 · inf. Write gt.abs(x)",
        True,
    ),
    # powers and products at zero
    Kink("x ** 2", "x ** 2", "x ** 2", 0.0, 0.0, 2.0, "a parabola"),
    Kink("x ** 2.0", "x ** 2.0", "x ** 2.0", 0.0, 0.0, 2.0, "a parabola"),
    Kink("x ** 1.0", "x ** 1.0", "x ** 1.0", 0.0, 1.0, 0.0, "it is x"),
    Kink("x ** 0.0", "x ** 0.0", "x ** 0.0", 0.0, 0.0, 0.0, "it is 1"),
    Kink(
        "gt.power(0.0, x)",
        "jnp.power(0.0, x)",
        "tf.pow(tf.zeros_like(x), x)",
        2.0,
        0.0,
        0.0,
        "it is 0 nearby",
    ),
    Kink(
        "gt.prod(x)",
        "jnp.prod(x)",
        "tf.reduce_prod(x)",
        [0.0, 2.0, 3.0],
        [6.0, 0.0, 0.0],
        [5.0, 3.0, 2.0],
        "the product of the others",
    ),
    Kink(
        "gt.prod(x)",
        "jnp.prod(x)",
        "tf.reduce_prod(x)",
        [0.0, 0.0, 3.0],
        [0.0, 0.0, 0.0],
        [3.0, 3.0, 0.0],
        "the product of the others",
    ),
    Kink(
        "gt.cumprod(x)[-1]",
        "jnp.cumprod(x)[-1]",
        "tf.math.cumprod(x)[-1]",
        [0.0, 2.0, 3.0],
        [6.0, 0.0, 0.0],
        [5.0, 3.0, 2.0],
        "the product of the others",
    ),
    Kink(
        "gt.linalg.det(x)",
        "jnp.linalg.det(x)",
        "tf.linalg.det(x)",
        [[1.0, 2.0], [2.0, 4.0]],
        [[4.0, -2.0], [-2.0, 1.0]],
        [[1.0, -1.0], [-1.0, 1.0]],
        "the cofactors, though singular",
    ),
    Kink("gt.sinc(x)", "jnp.sinc(x)", "", 0.0, 0.0, -3.289868133696453, "smooth: a limit"),
    Kink(
        "gt.arctan2(x, 0.0)",
        "jnp.arctan2(x, 0.0)",
        "tf.atan2(x, tf.zeros_like(x))",
        0.0,
        None,
        None,
        "the angle of the origin is any",
    ),
    # where the value is infinite, or the end of the range
    _same("log", 0.0, INF, None, "the slope's limit, from the right"),
    _same("log1p", -1.0, INF, None, "the slope's limit, from the right"),
    _same("reciprocal", 0.0, None, None, "no value either"),
    Kink("gt.arcsin(x)", "jnp.arcsin(x)", "tf.asin(x)", 1.0, INF, None, _ROOT),
    Kink("gt.arccos(x)", "jnp.arccos(x)", "tf.acos(x)", 1.0, -INF, None, _ROOT),
    Kink("gt.arccosh(x)", "jnp.arccosh(x)", "tf.acosh(x)", 1.0, INF, None, _ROOT),
    Kink("gt.arctanh(x)", "jnp.arctanh(x)", "tf.atanh(x)", 1.0, INF, None, "the slope's limit"),
    *(_same(name, at, 0.0, 0.0, _CONSTANT) for name in ("tanh",) for at in (INF, -INF)),
    *(
        Kink("gt.arctan(x)", "jnp.arctan(x)", "tf.atan(x)", at, 0.0, 0.0, _PARTS, True)
        for at in (INF, -INF)
    ),
    *(_nn("sigmoid", at, 0.0, 0.0, _CONSTANT) for at in (INF, -INF)),
    *(
        _nn("softplus", at, slope, 0.0, "a straight line at its end")
        for at, slope in ((INF, 1.0), (-INF, 0.0))
    ),
    *(
        _nn(name, at, slope, 0.0, "a straight line at its end", other)
        for name, other in (("silu", ""), ("gelu", ""), ("mish", "-"))
        for at, slope in ((INF, 1.0), (-INF, 0.0))
    ),
    _nn("elu", -INF, 0.0, 0.0, _CONSTANT),
    _nn("softsign", INF, 0.0, 0.0, _CONSTANT),
    _nn("log_sigmoid", INF, 0.0, 0.0, _CONSTANT, "-"),
    _nn("log_sigmoid", -INF, 1.0, 0.0, "a straight line at its end", "-"),
    _same("exp", -INF, 0.0, 0.0, _CONSTANT),
    _same("expm1", -INF, 0.0, 0.0, _CONSTANT),
    Kink("gt.erf(x)", "jax.scipy.special.erf(x)", "tf.math.erf(x)", INF, 0.0, 0.0, _PARTS, True),
    Kink(
        "gt.logsumexp(x)",
        "jax.nn.logsumexp(x)",
        "tf.reduce_logsumexp(x)",
        [-INF, 0.0],
        [0.0, 1.0],
        [0.0, 0.0],
        "what is not there weighs nothing",
    ),
    Kink(
        "gt.logsumexp(x)",
        "jax.nn.logsumexp(x)",
        "tf.reduce_logsumexp(x)",
        [-INF, -INF],
        None,
        None,
        "0 / 0: any weights",
    ),
    Kink("gt.logaddexp(x, -np.inf)", "jnp.logaddexp(x, -jnp.inf)", "", 1.0, 1.0, 0.0, "it is x"),
    Kink(
        "gt.sum(gt.nn.softmax(x) * gt.constant([0.0, 1.0]))",
        "jnp.sum(jax.nn.softmax(x) * jnp.array([0.0, 1.0]))",
        "tf.reduce_sum(tf.nn.softmax(x) * tf.constant([0.0, 1.0], x.dtype))",
        [-INF, 0.0],
        [0.0, 0.0],
        [0.0, 0.0],
        "what is not there weighs nothing",
    ),
    Kink(
        "gt.where(x > 0.0, gt.log(x), 0.0)",
        "jnp.where(x > 0.0, jnp.log(x), 0.0)",
        "tf.where(x > 0.0, tf.math.log(x), tf.zeros_like(x))",
        -1.0,
        0.0,
        0.0,
        "both sides are computed, and the gradient of the one not taken is 0",
    ),
    Kink(
        "gt.where(x > 0.0, gt.log(x), 0.0)",
        "jnp.where(x > 0.0, jnp.log(x), 0.0)",
        "tf.where(x > 0.0, tf.math.log(x), tf.zeros_like(x))",
        0.0,
        None,
        None,
        "0 times the infinite slope of the side not taken: choose the argument of log too",
    ),
    # steps
    *(
        _same(name, at, None, None, _JUMP)
        for name, at in (("floor", 1.0), ("ceil", 1.0), ("round", 0.5))
    ),
    Kink("gt.heaviside(x, 0.5)", "jnp.heaviside(x, 0.5)", "", 0.0, None, None, _JUMP),
    Kink(
        "gt.copysign(x, 1.0)",
        "jnp.copysign(x, 1.0)",
        "",
        0.0,
        Interval(-1, 1),
        0.0,
        "as abs; the sign of the zero tells the side",
    ),
    # nan, and where it goes
    *(
        Kink(
            f"gt.{name}(x, 1.0)",
            f"jnp.{name}(x, 1.0)",
            f"tf.{name}(x, tf.ones_like(x))",
            NAN,
            1.0,
            0.0,
            _NAN,
        )
        for name in ("maximum", "minimum")
    ),
    Kink(
        "gt.maximum(1.0, x)",
        "jnp.maximum(1.0, x)",
        "tf.maximum(tf.ones_like(x), x)",
        NAN,
        1.0,
        0.0,
        _NAN,
    ),
    Kink(
        "gt.clip(x, 0.0, 1.0)",
        "jnp.clip(x, 0.0, 1.0)",
        "tf.clip_by_value(x, tf.zeros_like(x), tf.ones_like(x))",
        NAN,
        1.0,
        0.0,
        _NAN,
    ),
    *(
        Kink(
            f"gt.{name}(x)",
            f"jnp.{name}(x)",
            f"tf.reduce_{name}(x)",
            [NAN, 1.0],
            [1.0, 0.0],
            0.0,
            _NAN,
        )
        for name in ("max", "min")
    ),
    Kink(
        "gt.sum(gt.nn.max_pool1d(gt.reshape(x, (1, -1, 1)), 2, 2))",
        "",
        "tf.reduce_sum(tf.nn.max_pool1d(tf.reshape(x, (1, -1, 1)), 2, 2, 'VALID'))",
        [NAN, 1.0],
        [1.0, 0.0],
        0.0,
        _NAN,
    ),
    _nn("relu", NAN, None, None, "a number is 0 or on the line, nan neither: as JAX has it"),
    # ties
    Kink(
        "gt.sum(gt.nn.max_pool1d(gt.reshape(x, (1, -1, 1)), 2, 2))",
        "",
        "tf.reduce_sum(tf.nn.max_pool1d(tf.reshape(x, (1, -1, 1)), 2, 2, 'VALID'))",
        [2.0, 2.0],
        Interval(0, 1),
        0.0,
        "a tie in a window",
    ),
    Kink(
        "gt.min(x)",
        "jnp.min(x)",
        "tf.reduce_min(x)",
        [2.0, 1.0, 1.0],
        Interval(0, 1),
        0.0,
        "what is tied shares the slope of 1",
    ),
    Kink(
        "gt.sum(gt.unique(x) ** 2)",
        "jnp.sum(jnp.unique(x, size=2) ** 2)",
        "",
        [3.0, 1.0, 3.0],
        Interval(0, 6),
        None,
        "to the first that occurs",
    ),
    Kink(
        "gt.sum(gt.union1d(x, x) ** 2)",
        "",
        "",
        3.0,
        Interval(0, 6),
        None,
        "to the first that occurs",
    ),
    Kink(
        "gt.histogram_bin_edges(x, 2)[0]",
        "jnp.histogram_bin_edges(x, 2)[0]",
        "",
        [1.0, 1.0, 3.0],
        Interval(0, 1),
        0.0,
        "the smallest, shared by those that tie",
    ),
    Kink(
        "gt.quantile(gt.constant([1.0, 2.0, 4.0]), x)",
        "jnp.quantile(jnp.array([1.0, 2.0, 4.0]), x)",
        "",
        0.5,
        Interval(1, 4),
        0.0,
        "at an element: the slope of a side, or between",
    ),
    Kink(
        "gt.clip(x, 0.0, 1.0)",
        "jnp.clip(x, 0.0, 1.0)",
        "tf.clip_by_value(x, tf.zeros_like(x), tf.ones_like(x))",
        1.0,
        Interval(0, 1),
        0.0,
        "a bound still counts as inside",
    ),
    Kink(
        "gt.clip_by_norm(x, 1.0)[0]",
        "",
        "tf.clip_by_norm(x, 1.0)[0]",
        [1.0, 0.0],
        Interval(0, 1),
        None,
        "on the sphere: as inside, or as outside",
    ),
    Kink(
        "gt.clip_by_norm(x, 1.0)[0]",
        "",
        "tf.clip_by_norm(x, 1.0)[0]",
        [0.0, 0.0],
        [1.0, 0.0],
        0.0,
        "it is x inside",
    ),
    _nn("hard_tanh", -1.0, Interval(0, 1), 0.0, _SIDES, "-"),
    _nn("hard_sigmoid", -3.0, Interval(0, 1 / 6), 0.0, _SIDES, "-"),
    _nn("hard_silu", -3.0, Interval(-0.5, 0), Interval(0, 1 / 3), _SIDES, "-"),
    _nn("hard_silu", 3.0, Interval(1, 1.5), Interval(0, 1 / 3), _SIDES, "-"),
    Kink("gt.angle(x)", "jnp.angle(x)", "tf.math.angle(x)", 0.0, None, None, _JUMP),
    Kink(
        "gt.unwrap(x)[1]",
        "jnp.unwrap(x)[1]",
        "",
        [0.0, 3.141592653589793],
        [0.0, 1.0],
        0.0,
        "whole turns are added, which have no slope",
    ),
    Kink(
        "gt.nextafter(x, 2.5)",
        "",
        "tf.math.nextafter(x, tf.constant(2.5, x.dtype))",
        2.5,
        1.0,
        0.0,
        "the next number moves with it",
    ),
    Kink(
        "gt.remainder(x, 2.0)",
        "jnp.remainder(x, 2.0)",
        "tf.math.floormod(x, 2 * tf.ones_like(x))",
        4.0,
        1.0,
        0.0,
        "it jumps there, with the slope 1 from either side",
    ),
    Kink(
        "gt.remainder(4.0, x)",
        "jnp.remainder(4.0, x)",
        "tf.math.floormod(4 * tf.ones_like(x), x)",
        2.0,
        Interval(-2, -1),
        0.0,
        "it jumps there, with the slopes of the quotient",
    ),
    Kink(
        "gt.floor_divide(x, 2.0)",
        "jnp.floor_divide(x, 2.0)",
        "tf.math.floordiv(x, 2 * tf.ones_like(x))",
        4.0,
        None,
        None,
        _JUMP,
    ),
    *(
        _same(name, at, None, None, _JUMP, tf)
        for name, at, tf in (("trunc", 1.0, ""), ("rint", 0.5, "tf.math"))
    ),
    # zeros
    Kink(
        "gt.linalg.norm(x, 'nuc')",
        "jnp.linalg.norm(x, 'nuc')",
        "tf.reduce_sum(tf.linalg.svd(x, compute_uv=False))",
        [[1.0, 2.0], [2.0, 4.0]],
        [[0.2, 0.4], [0.4, 0.8]],
        None,
        "the least of all subgradients",
    ),
    Kink(
        "gt.power(0.0, x)",
        "jnp.power(0.0, x)",
        "tf.pow(tf.zeros_like(x), x)",
        0.0,
        None,
        None,
        "it jumps from 1 to 0: 0, as everywhere else",
    ),
    Kink(
        "gt.power(x, x)",
        "jnp.power(x, x)",
        "tf.pow(x, x)",
        0.0,
        NEG,
        None,
        "x log x + 1 falls vertically; by its base x⁰ has the slope 0, and by its exponent 0ʸ too",
        True,
    ),
    Kink(
        "gt.nn.kl_divergence(labels=x, probabilities=np.array([0.5, 0.5]))",
        "",
        "",
        [0.0, 1.0],
        None,
        None,
        "of a label of 0: 0 counts as 0 log 0",
    ),
    Kink(
        "gt.nn.kl_divergence(labels=np.array([0.0, 1.0]), probabilities=x)",
        "",
        "",
        [0.0, 1.0],
        [0.0, -1.0],
        None,
        "what is labelled 0 weighs nothing",
    ),
    Kink(
        "gt.nn.cosine_similarity(x, np.array([1.0, 0.0]))",
        "",
        "",
        [0.0, 0.0],
        None,
        None,
        "a vector of length 0 has no direction",
    ),
    Kink("gt.arcsin(x)", "jnp.arcsin(x)", "tf.math.asin(x)", -1.0, INF, None, _ROOT),
    Kink("gt.arccos(x)", "jnp.arccos(x)", "tf.math.acos(x)", -1.0, NEG, None, _ROOT),
    Kink(
        "gt.arctanh(x)", "jnp.arctanh(x)", "tf.math.atanh(x)", -1.0, INF, None, "the slope's limit"
    ),
    # probabilities of 0 and 1
    *(
        Kink(
            "gt.nn.sigmoid_cross_entropy_with_logits(labels=gt.ones_like(x), logits=x)",
            "",
            "tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones_like(x), logits=x)",
            at,
            slope,
            0.0,
            "a straight line at either end",
        )
        for at, slope in ((INF, 0.0), (NEG, -1.0))
    ),
    Kink(
        "gt.nn.softmax_cross_entropy_with_logits(labels=np.array([1.0, 0.0]), logits=x)",
        "",
        "tf.nn.softmax_cross_entropy_with_logits(labels=np.array([1.0, 0.0]), logits=x)",
        [0.0, NEG],
        [0.0, 0.0],
        0.0,
        "what is not there, and labelled 0, weighs nothing",
    ),
    Kink(
        "gt.nn.softmax_cross_entropy_with_logits(labels=np.array([1.0, 0.0]), logits=x)",
        "",
        "tf.nn.softmax_cross_entropy_with_logits(labels=np.array([1.0, 0.0]), logits=x)",
        [800.0, 0.0],
        [0.0, 0.0],
        0.0,
        "exact",
    ),
    *(
        Kink(
            "gt.training.losses.binary_crossentropy(np.array([1.0]), x)",
            "",
            "tf.keras.losses.binary_crossentropy(tf.ones_like(x), x)",
            at,
            None,
            None,
            "probabilities are kept from 0 and 1, as Keras does, and beyond is no slope",
        )
        for at in ([0.0], [1.0])
    ),
    # at infinities
    *(
        Kink(
            f"gt.arctan2(x, {at})",
            f"jnp.arctan2(x, {at.replace('np', 'jnp')})",
            "",
            1.0,
            0.0,
            0.0,
            _CONSTANT,
        )
        for at in ("np.inf", "-np.inf")
    ),
    Kink("gt.hypot(x, 1.0)", "jnp.hypot(x, 1.0)", "", INF, 1.0, 0.0, _FAR, True),
    Kink(
        "gt.linalg.norm(x)",
        "jnp.linalg.norm(x)",
        "tf.norm(x)",
        [INF, 1.0],
        [1.0, 0.0],
        0.0,
        _FAR,
        True,
    ),
    Kink(
        "gt.power(np.inf, x)",
        "jnp.power(jnp.inf, x)",
        "tf.pow(np.inf * tf.ones_like(x), x)",
        -1.0,
        0.0,
        0.0,
        "it is 0 nearby",
    ),
    *(
        _same(name, INF, 0.0, 0.0, _PARTS, tf, True)
        for name, tf in (("arcsinh", ""), ("cbrt", ""), ("arccosh", ""))
    ),
    Kink("gt.erf(x)", "jax.scipy.special.erf(x)", "tf.math.erf(x)", NEG, 0.0, 0.0, _PARTS, True),
    Kink("gt.erfc(x)", "jax.scipy.special.erfc(x)", "tf.math.erfc(x)", INF, 0.0, 0.0, _PARTS, True),
    _nn("hard_silu", INF, 1.0, 0.0, "a straight line at its end", "-"),
    _nn("hard_silu", NEG, 0.0, 0.0, _CONSTANT, "-"),
    _nn("softsign", NEG, 0.0, 0.0, _CONSTANT),
    *(
        _nn("squareplus", at, slope, 0.0, "a straight line at its end", "-")
        for at, slope in ((INF, 1.0), (NEG, 0.0))
    ),
    Kink(
        "gt.nn.leaky_relu(x, 0.0)",
        "jax.nn.leaky_relu(x, 0.0)",
        "tf.nn.leaky_relu(x, 0.0)",
        NEG,
        0.0,
        0.0,
        "it is relu, and not 0 · ∞",
    ),
    *(
        Kink(
            "gt.training.losses.log_cosh(np.zeros(1), x)",
            "",
            "tf.keras.losses.log_cosh(tf.zeros_like(x), x)",
            [at],
            [slope],
            [0.0],
            "a straight line at its end",
        )
        for at, slope in ((INF, 1.0), (NEG, -1.0))
    ),
]
