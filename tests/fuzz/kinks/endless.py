"""Rows of the table of kinks: infinities, probabilities of 0 and 1, and nan."""

from __future__ import annotations

from fuzz.kinks.kink import CONSTANT, FAR, INF, NAN, NEG, PARTS, ROOT, TO_NAN, Kink, of_nn, same

__all__ = ["ENDLESS"]

ENDLESS: list[Kink] = [
    # where the value is infinite, or the end of the range
    same("log", 0.0, INF, None, "the slope's limit, from the right"),
    same("log1p", -1.0, INF, None, "the slope's limit, from the right"),
    same("reciprocal", 0.0, None, None, "the value does not exist either"),
    Kink("gt.arcsin(x)", "jnp.arcsin(x)", "tf.asin(x)", 1.0, INF, None, ROOT),
    Kink("gt.arccos(x)", "jnp.arccos(x)", "tf.acos(x)", 1.0, -INF, None, ROOT),
    Kink("gt.arccosh(x)", "jnp.arccosh(x)", "tf.acosh(x)", 1.0, INF, None, ROOT),
    Kink("gt.arctanh(x)", "jnp.arctanh(x)", "tf.atanh(x)", 1.0, INF, None, "the slope's limit"),
    *(same(name, at, 0.0, 0.0, CONSTANT) for name in ("tanh",) for at in (INF, -INF)),
    same("cbrt", INF, 0.0, 0.0, CONSTANT, tf=""),
    *(
        Kink("gt.arctan(x)", "jnp.arctan(x)", "tf.atan(x)", at, 0.0, 0.0, PARTS, True)
        for at in (INF, -INF)
    ),
    *(of_nn("sigmoid", at, 0.0, 0.0, CONSTANT) for at in (INF, -INF)),
    *(
        of_nn("softplus", at, slope, 0.0, "a straight line in the limit")
        for at, slope in ((INF, 1.0), (-INF, 0.0))
    ),
    *(
        of_nn(name, at, slope, 0.0, "a straight line in the limit", other)
        for name, other in (("silu", ""), ("gelu", ""), ("mish", "-"))
        for at, slope in ((INF, 1.0), (-INF, 0.0))
    ),
    of_nn("elu", -INF, 0.0, 0.0, CONSTANT),
    of_nn("softsign", INF, 0.0, 0.0, CONSTANT),
    of_nn("log_sigmoid", INF, 0.0, 0.0, CONSTANT, "-"),
    of_nn("log_sigmoid", -INF, 1.0, 0.0, "a straight line in the limit", "-"),
    same("exp", -INF, 0.0, 0.0, CONSTANT),
    same("expm1", -INF, 0.0, 0.0, CONSTANT),
    Kink("gt.erf(x)", "jax.scipy.special.erf(x)", "tf.math.erf(x)", INF, 0.0, 0.0, PARTS, True),
    Kink(
        "gt.logsumexp(x)",
        "jax.nn.logsumexp(x)",
        "tf.reduce_logsumexp(x)",
        [-INF, 0.0],
        [0.0, 1.0],
        [0.0, 0.0],
        "elements of -inf have no weight",
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
        "elements of -inf have no weight",
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
    # at infinities
    *(
        Kink(
            f"gt.arctan2(x, {at})",
            f"jnp.arctan2(x, {at.replace('np', 'jnp')})",
            "",
            1.0,
            0.0,
            0.0,
            CONSTANT,
        )
        for at in ("np.inf", "-np.inf")
    ),
    Kink("gt.hypot(x, 1.0)", "jnp.hypot(x, 1.0)", "", INF, 1.0, 0.0, FAR, True),
    Kink(
        "gt.linalg.norm(x)",
        "jnp.linalg.norm(x)",
        "tf.norm(x)",
        [INF, 1.0],
        [1.0, 0.0],
        0.0,
        FAR,
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
        same(name, INF, 0.0, 0.0, PARTS, tf, True)
        for name, tf in (("arcsinh", ""), ("arccosh", ""))
    ),
    Kink("gt.erf(x)", "jax.scipy.special.erf(x)", "tf.math.erf(x)", NEG, 0.0, 0.0, PARTS, True),
    Kink("gt.erfc(x)", "jax.scipy.special.erfc(x)", "tf.math.erfc(x)", INF, 0.0, 0.0, PARTS, True),
    of_nn("hard_silu", INF, 1.0, 0.0, "a straight line in the limit", "-"),
    of_nn("hard_silu", NEG, 0.0, 0.0, CONSTANT, "-"),
    of_nn("softsign", NEG, 0.0, 0.0, CONSTANT),
    *(
        of_nn("squareplus", at, slope, 0.0, "a straight line in the limit", "-")
        for at, slope in ((INF, 1.0), (NEG, 0.0))
    ),
    Kink(
        "gt.nn.leaky_relu(x, 0.0)",
        "jax.nn.leaky_relu(x, 0.0)",
        "tf.nn.leaky_relu(x, 0.0)",
        NEG,
        0.0,
        0.0,
        "equal to relu, not 0 · ∞",
    ),
    Kink(
        "gt.training.losses.log_cosh(np.zeros(1), x)",
        "",
        "tf.keras.losses.logcosh(tf.zeros_like(x), x)",
        [0.0],
        [0.0],
        [1.0],
        "smooth: a parabola near 0",
    ),
    *(
        Kink(
            "gt.training.losses.log_cosh(np.zeros(1), x)",
            "",
            "tf.keras.losses.logcosh(tf.zeros_like(x), x)",
            [at],
            [slope],
            [0.0],
            "a straight line in the limit",
        )
        for at, slope in ((INF, 1.0), (NEG, -1.0))
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
        "elements of -inf with the label 0 have no weight",
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
            "gt.training.losses.binary_crossentropy(np.array([1.0]), x, from_logits=False)",
            "",
            "tf.keras.losses.binary_crossentropy(tf.ones_like(x), x)",
            at,
            None,
            None,
            "probabilities are clipped away from 0 and 1, as in Keras, with slope 0 beyond",
        )
        for at in ([0.0], [1.0])
    ),
    # nan, and where it spreads
    *(
        Kink(
            f"gt.{name}(x, 1.0)",
            f"jnp.{name}(x, 1.0)",
            f"tf.{name}(x, tf.ones_like(x))",
            NAN,
            1.0,
            0.0,
            TO_NAN,
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
        TO_NAN,
    ),
    Kink(
        "gt.clip(x, 0.0, 1.0)",
        "jnp.clip(x, 0.0, 1.0)",
        "tf.clip_by_value(x, tf.zeros_like(x), tf.ones_like(x))",
        NAN,
        1.0,
        0.0,
        TO_NAN,
    ),
    *(
        Kink(
            f"gt.{name}(x)",
            f"jnp.{name}(x)",
            f"tf.reduce_{name}(x)",
            [NAN, 1.0],
            [1.0, 0.0],
            0.0,
            TO_NAN,
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
        TO_NAN,
    ),
    of_nn("relu", NAN, None, None, "a number is 0 or on the line, nan is neither; as in JAX"),
]
