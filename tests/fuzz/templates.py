"""The lines of programs: text with slots for operands (see ``drawing.KINDS``)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuzz.drawing import Draw

__all__ = ["OF_VARIABLES", "TEMPLATES", "Template"]

#: A text with slots, or a function that returns one, or None if no known value is suitable.
Template = str | Callable[["Draw"], str | None]


def _each(names: str, text: str, prefix: str = "gt.") -> list[Template]:
    """Return the same line for several functions."""
    return [text.replace("NAME", prefix + name) for name in names.split()]


ELEMENTWISE: list[Template] = [
    *_each("sin cos tanh negative square arctan arcsinh expm1 cosh sinh erf", "NAME(<r>)"),
    *_each("erfc exp exp2 cbrt deg2rad", "NAME(<r> * 0.5 + 0.8)"),
    *_each("log log1p log2 log10 sqrt reciprocal lgamma digamma", "NAME(<p>)"),
    *_each("arcsin arccos arctanh tan", "NAME(<u>)"),
    *_each("abs fabs sign cbrt", "NAME(<o>)"),
    *_each("exp sin cos square conj abs sinh cosh", "NAME(<c>)"),
    *_each("sin conj exp", "NAME(gt.tanh(<c>) * 0.4)"),
    *_each("real imag", "NAME(<f>)"),
    *("gt.abs(<c> + 0.1)", "gt.angle(<c> + (0.2 + 0.1j))", "gt.log(<c> * 0.1 + 1.5)"),
    *("<c> * <bf>", "<c> + <bf>", "<r> * (0.5 + 0.25j)", "gt.sqrt(<c> * 0.1 + 1.5)"),
    *(
        "gt.rad2deg(<r> * 0.02)",
        "gt.arccosh(<p> + 1.0)",
        "gt.sinc(<r>)",
        "gt.i0(<u>)",
        "gt.polygamma(1, <p>)",
    ),
    *("<r> + <b>", "<r> - <b>", "<r> * <b>", "<r> / <bp>", "<r> * <s>", "<r> + <num>"),
    *("<num> * <r>", "<num> - <r>", "<pos> / <p>", "<r> * <r>"),
    *("<p> ** <b>", "<r> ** 2", "<r> ** 3", "<p> ** <num>", "<pos> ** <r>", "gt.power(<o>, -2)"),
    *_each("arctan2 hypot logaddexp logaddexp2", "NAME(<p>, <b>)"),
    *("gt.maximum(<r>, <s> + 7.1)", "gt.minimum(<o>, 0.0)", "gt.maximum(<o>, 0.0)"),
    *("gt.where(gt.greater(<o>, 0), <b>, <b>)", "gt.where(<o> > 0.0, <b>, <num>)"),
    *("gt.clip(<r>, -50.0, 50.0)", "gt.copysign(<o>, <bo>)", "gt.remainder(<u> + 1.5, 3.0)"),
    *(
        "gt.float_power(<p>, <num>)",
        "gt.nan_to_num(<r>)",
        "gt.ldexp(<r>, 2)",
        "gt.round(<u> * 0.5)",
    ),
    *("gt.cast(<r>, 'complex128') * 1j", "gt.cast(<r> * 0.5, 'float64')", "gt.heaviside(<o>, 0.5)"),
]
ACTIVATIONS: list[Template] = [
    *_each(
        "sigmoid silu softplus mish log_sigmoid gelu squareplus tanh_shrink", "NAME(<r>)", "gt.nn."
    ),
    *_each("relu elu selu celu softsign leaky_relu", "NAME(<o>)", "gt.nn."),
    *("gt.nn.gelu(<r>, approximate=True)", "gt.nn.hard_sigmoid(<u>)", "gt.nn.hard_silu(<u>)"),
    *("gt.nn.hard_tanh(<u>)", "gt.nn.soft_shrink(<u>, threshold=0.95)", "gt.nn.relu6(<p>)"),
    *_each("softmax log_softmax", "NAME(<n>, axis=<ax>)", "gt.nn."),
    *("gt.nn.layer_normalization(<n>, epsilon=0.3)", "gt.logsumexp(<n>, axis=<axes>)"),
    "gt.nn.huber(labels=<r>, predictions=<s> + 4.5, delta=0.7)",
    "gt.nn.softmax_cross_entropy_with_logits(labels=gt.nn.softmax(<n>), logits=<s>)",
    "gt.nn.sigmoid_cross_entropy_with_logits(labels=gt.nn.sigmoid(<n>), logits=<s>)",
    "gt.nn.cosine_similarity(<n>, <s>, axis=<ax>)",
    "gt.nn.kl_divergence(labels=gt.nn.softmax(<n>), probabilities=gt.nn.softmax(<s>))",
    "gt.nn.categorical_cross_entropy(labels=gt.nn.softmax(<n>), probabilities=gt.nn.softmax(<s>))",
    "gt.nn.binary_cross_entropy(labels=gt.nn.sigmoid(<n>), probabilities=gt.nn.sigmoid(<s>))",
    "gt.nn.batch_normalization(<M>, gt.mean(<s>, axis=0), gt.var(<s>, axis=0), epsilon=0.2)",
]
REDUCTIONS: list[Template] = [
    *_each("sum mean prod", "NAME(<n2>, axis=<axes>, keepdims=<bool>)"),
    *_each("sum mean var std", "NAME(<n>, axis=<axes>, keepdims=<bool>)"),
    *_each("max min ptp median", "NAME(<d1>, axis=<axes>, keepdims=<bool>)"),
    *_each("nansum nanmean nanprod nanvar", "NAME(<n>, axis=<axes>)"),
    *_each("nanmax nanmin nanmedian", "NAME(<d1>, axis=<axes>)"),
    *("gt.std(<n>, axis=<axes>, ddof=0) + 0.1", "gt.var(<n>, axis=<ax>, ddof=-1)"),
    *_each("cumsum cumprod", "NAME(<n2>, axis=<ax>)"),
    *_each("cumulative_max cumulative_min", "NAME(<d1>, axis=<ax>)"),
    *("gt.quantile(<d1>, 0.37, axis=<axes>)", "gt.percentile(<d1>, 61.0)", "gt.cumsum(<n>)"),
    *("gt.quantile(<d1>, np.array([0.21, 0.83]), axis=<ax>)", "gt.nanquantile(<d1>, 0.3)"),
    *("gt.average(<n>, axis=<ax>, weights=<sp>)", "gt.trapezoid(<n>, axis=<ax>)"),
    *("gt.linalg.norm(<r> + 0.1)", "gt.linalg.norm(<p>, axis=<ax>, keepdims=True)"),
    *("gt.linalg.vector_norm(<o>, ord=3)", "gt.linalg.vector_norm(<o>, ord=1)"),
    *("gt.cov(<M>)", "gt.sum(<n>, axis=<ax>, where=np.array(True))", "gt.count_nonzero(<r>) * <b>"),
    *("gt.sort(<d1>, axis=<ax>)", "gt.take_along_axis(<d1>, gt.argsort(<s>, axis=0), axis=0)"),
    *("gt.partition(<d1>, 0)", "gt.cumulative_sum(<v>, include_initial=True)"),
]
LINALG: list[Template] = [
    *("<n2> @ <t>", "gt.matmul(<q>, <s>)", "gt.dot(<n>, <t>)", "gt.outer(<v>, <v>)"),
    *_each("inv det", "NAME(<m>)", "gt.linalg."),
    *("gt.linalg.inv(<m> * 1.5)", "gt.linalg.slogdet(<m>)[1]"),
    *("gt.linalg.solve(<m>, <rhs>)", "gt.linalg.pinv(<m>)", "gt.linalg.expm(<q> * 0.3)"),
    "(lambda m: gt.linalg.cholesky(m @ gt.matrix_transpose(m)))(<m>)",
    *("gt.linalg.svdvals(<e>)", "gt.linalg.matrix_power(<q>, 3)", "gt.linalg.qr(<m>)[1]"),
    *("gt.linalg.matrix_power(<m>, -1)", "gt.linalg.qr(<m>)[0]", "gt.linalg.lstsq(<m>, <rhs>)[0]"),
    *("gt.trace(<A>)", "gt.diagonal(<A>)", "gt.tril(<A>)", "gt.triu(<A>, 1)", "gt.diag(<v>)"),
    *("gt.einsum('ij,ik->jk', <M>, <s>)", "gt.einsum('...i,...i->...', <n>, <s>)"),
    *("gt.einsum('ii->i', <M>)", "gt.tensordot(<v>, <s>, axes=1)", "gt.inner(<n>, <s>)"),
    *("gt.kron(<r>, <v>)", "gt.vdot(<n>, <s>)", "gt.vecdot(<n>, <s>)", "gt.linalg.norm(<M> + 0.1)"),
    "gt.linalg.solve_triangular(gt.tril(<m>), <rhs>, lower=True)",
    *(
        "(lambda m: gt.linalg.eigvalsh(m + gt.matrix_transpose(m)))(<e>)",
        "gt.linalg.multi_dot([<M>, <t>])",
    ),
    "gt.linalg.matrix_norm(<e>, ord=2)",
]
ANALYSIS: list[Template] = [
    *("gt.diff(<n>, axis=<ax>)", "gt.convolve(<v>, <v>)", "gt.correlate(<v>, <v>, mode='full')"),
    *("gt.interp(<u>, np.array([-1.0, 0.013, 1.0]), np.array([0.2, 1.1, -0.4]))", "gt.vander(<v>)"),
    *("gt.polyval(<v>, <u>)", "gt.polymul(<v>, <v>)", "gt.ediff1d(<r>)", "gt.gradient(<v>)"),
    *("gt.fft.fft(<n2>, axis=<ax>, norm=<norm>)", "gt.fft.rfft(<n>, norm=<norm>)"),
    *(
        "gt.real(gt.fft.ifft(<n2>))",
        "gt.fft.irfft(<n2>)",
        "gt.fft.fftshift(<n>)",
        "gt.fft.fft2(<A>)",
    ),
    *("gt.fft.rfft(<n>, n=3, axis=<ax>)", "gt.abs(gt.fft.rfft(<p>)) * 0.2", "gt.fft.hfft(<n2>)"),
    "gt.nn.conv1d(gt.reshape(<n>, (1, -1, 1)), np.ones((2, 1, 2)) * 0.4, padding='same')",
    "gt.nn.avg_pool1d(gt.reshape(<n>, (1, -1, 1)), 2, padding='same')",
    "gt.nn.max_pool1d(gt.reshape(<d1>, (1, -1, 1)), 2, 1, padding='same')",
    "gt.nn.conv2d(gt.reshape(<M>, (1, -1, 1, 1)), np.ones((2, 2, 1, 1)) * 0.3, padding='same')",
    "gt.nn.embedding_lookup(<M>, np.array([0, 0]))",
    "gt.nn.segment_sum(<v>, gt.zeros_like(<s>, dtype='int64'), 2)",
]
FLOW: list[Template] = [
    "gt.cond(gt.sum(<r>) > <num>, lambda a: gt.sin(a) * 1.5, lambda a: a * a * 0.4, <r>)",
    "gt.cond(gt.sum(<r>) < <num>, lambda: gt.tanh(<s>), lambda: gt.cos(<s>))",
    "gt.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, gt.sin(a) + <s> * 0.3), (0, <s>))[1]",
    "gt.while_loop(lambda a, n: n < 2, lambda a, n: (a * 0.9 + gt.cos(a), n + 1), (<r>, 0))[0]",
    "gt.scan(lambda c, a: (gt.tanh(c + a), c * a), gt.sum(<n>), <n>)[1]",
    "gt.scan(lambda c, a: (c * 0.7 + gt.sin(a), gt.cos(c)), gt.zeros_like(<n>[0]), <n>)[0]",
    "gt.scan(lambda c, a: (gt.tanh(c + a), c), gt.mean(<n>), <n>, reverse=True)[1]",
    "gt.map(lambda a: gt.sin(a) * gt.sum(a), <n>)",
    "gt.map(lambda a: gt.tanh(a) + gt.sum(<r>), <n>)",
    "gt.vmap(lambda a: gt.sum(a * a) * gt.cos(a))(<n>)",
    "gt.vmap(lambda a: gt.nn.softmax(gt.reshape(a, (-1,))))(<n>)",
    "gt.vmap(gt.grad(lambda a: gt.sum(gt.sin(a) * a)))(<n>)",
    "gt.grad(lambda a: gt.sum(gt.tanh(a) * <r>))(<r>)",
    "gt.jvp(lambda a: gt.sin(a) * a, (<r>,), (<s>,))[1]",
    "gt.function(lambda a, b: gt.sin(a) * b)(<r>, <b>)",
    "gt.function(lambda a: gt.tanh(a) * <b>)(<r>)",
    "gt.recompute_grad(lambda a, b: gt.tanh(a * b) + a)(<r>, <s>)",
    "gt.recompute_grad(lambda a: gt.sin(a) * <b>)(<r>)",
    *("gt.stop_gradient(<r>)", "cubed(<r>)", "paired(<r>, <s>)[0]", "paired(<r>, <s>)[1]"),
    "nested_rule(<r>)",
    "(lambda f: f(f(<r>)))(lambda a: gt.sin(a) + 0.2 * a)",
    "gt.select([<o> > 0.5, <o> < -0.5], [<r>, 2.0 * <r>], 0.3)",
    "(lambda b: gt.apply_along_axis(lambda a: gt.cumsum(a) * gt.sum(a), 0, b))(<n>)",
]
COMPOSITIONS: list[Template] = [
    "gt.recompute_grad(lambda a: gt.recompute_grad(lambda b: gt.sin(b) * a)(a) + a)(<r>)",
    "gt.recompute_grad(lambda a: gt.scan(lambda c, k: (gt.tanh(c + k), c * k), 0.3 * gt.sum(a), a)"
    "[1])(<n>)",
    "gt.recompute_grad(lambda a, b: gt.cond(gt.sum(a) > <num>, lambda: gt.sin(a) * b, lambda: a * a"
    "))(<r>, <s>)",
    "gt.recompute_grad(lambda a, b: gt.map(lambda row: gt.tanh(row) * gt.sum(b), a))(<n>, <s>)",
    "gt.recompute_grad(lambda a: gt.while_loop(lambda i, c: i < 2, lambda i, c: (i + 1, gt.tanh(c)"
    " + a * 0.3), (0, a))[1])(<r>)",
    *("gt.recompute_grad(cubed)(<r>)", "gt.recompute_grad(lambda a, b: paired(a, b)[0])(<r>, <s>)"),
    *("weighted(<r>, <s>)", "weighted(<r>, y=<s>)", "weighted(y=<r>, x=<s>)"),
    *("weighted(x=<r>, y=<s>, factor=0.7)", "weighted(<r>, <s>, factor=<num>)", "cubed(x=<r>)"),
    *("rooted(<p>)", "waving(<r>)", "paired(<r>, y=<s>)[0]", "paired(y=<r>, x=<s>)[1]"),
    "gt.vmap(lambda a: gt.cond(gt.sum(a) > 0.1, lambda: cubed(a), lambda: weighted(a, a)))(<n>)",
    "(lambda k, m: gt.vmap(lambda a: gt.cond(gt.sum(a) > 0.1, lambda: gt.sin(a) * gt.sum(k), lambda"
    ": a * gt.sum(k * k)))(m))(<r>, <n>)",
    "(lambda k, m: gt.scan(lambda c, a: gt.cond(c > 0.2, lambda: (c * 0.5 + gt.sum(k), gt.sin(a)),"
    " lambda: (gt.tanh(gt.sum(a)) + c, a * gt.sum(k))), gt.sum(m), m)[1])(<r>, <n>)",
    "(lambda k, m: gt.vmap(lambda a: gt.while_loop(lambda i, c: i < 2, lambda i, c: (i + 1,"
    " gt.tanh(c * gt.sum(k))), (0, a))[1])(m))(<r>, <n>)",
    "(lambda k, m: gt.vmap(lambda a: gt.scan(lambda c, b: (gt.tanh(c + b * gt.sum(k)), c), gt.sum("
    "a), gt.stack([a, k[0] * a]))[0])(m))(<v>, <n>)",
    "(lambda k: gt.cond(gt.sum(k) > <num>, lambda: gt.map(lambda a: a * gt.sum(k), k), lambda:"
    " gt.sin(k)))(<n>)",
    "(lambda k, m: gt.vmap(lambda a: gt.sum(k * gt.sum(a)) * a)(m))(<r>, <n>)",
    "(lambda k, m: gt.vmap(gt.recompute_grad(lambda a: gt.tanh(a * gt.sum(k))))(m))(<r>, <n>)",
    *("gt.sum([<r>, <s>], axis=0)", "gt.mean([[<r>, <s>], [<s>, <s>]], axis=(0, 1))"),
    *("gt.multiply([<r>, <s>], 0.5)", "gt.concatenate([[<r>, <s>], [<s>, <s>]])[1]"),
    "gt.tanh([<r>, <s>])[1]",
]
#: Expressions of a variable ``VAR`` and a value of its shape.
OF_VARIABLES = [
    *("{0} * VAR", "VAR + {0}", "gt.sin(VAR) * {0}", "VAR.value - {0}"),
    *("scaled_by(VAR)({0})", "nested_by(VAR)({0})", "weighted({0}, VAR)", "weighted(VAR, y={0})"),
    "gt.recompute_grad(lambda a: gt.tanh(a * VAR))({0})",
    "gt.recompute_grad(scaled_by(VAR))({0})",
    "gt.recompute_grad(lambda a: gt.recompute_grad(lambda b: gt.sin(b * VAR))(a) * VAR)({0})",
    "gt.recompute_grad(lambda a: gt.scan(lambda c, k: (gt.tanh(c * VAR + k), c), a,"
    " np.array([0.1, 0.3]))[0])({0})",
    "gt.recompute_grad(lambda a: gt.cond(gt.sum(a) > 0.1, lambda: a * VAR, lambda: gt.sin(VAR) + a"
    "))({0})",
    "gt.cond(gt.sum({0}) > 0.1, lambda: scaled_by(VAR)({0}), lambda: gt.sin(VAR) + {0})",
    "gt.scan(lambda c, k: (gt.tanh(c + VAR * k), gt.sum(VAR * c)), {0}, np.array([0.4, 1.0]))[0]",
    "gt.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, gt.tanh(a * VAR)), (0, {0}))[1]",
    "gt.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, nested_by(VAR)(a)), (0, {0}))[1]",
    "gt.map(lambda a: scaled_by(VAR)(a) * VAR, gt.stack([{0}, 2.0 * {0}]))[1]",
    "gt.vmap(lambda a: scaled_by(VAR)(a))(gt.stack([{0}, 0.5 * {0}]))[1]",
    "gt.vmap(lambda a: gt.cond(gt.sum(a) > 0.1, lambda: scaled_by(VAR)(a), lambda: a * VAR))("
    "gt.stack([{0}, 1.0 - {0}]))[1]",
    "gt.function(lambda a: nested_by(VAR)(a) + VAR)({0})",
]
SHAPES: list[Template] = [
    *("gt.transpose(<r>)", "gt.ravel(<f>)", "gt.expand_dims(<r>, 0)", "gt.squeeze(<f>)"),
    *("gt.flip(<n2>, axis=<axes>)", "gt.roll(<n2>, <int>, axis=<ax>)", "gt.roll(<r>, <int>)"),
    *("gt.swapaxes(<n>, <ax>, <ax>)", "gt.moveaxis(<n>, <ax>, <ax>)", "gt.rot90(<A>, <int>)"),
    *("gt.stack([<r>, <s>], axis=0)", "gt.stack([<n>, <s>], axis=<ax>)"),
    *(
        "gt.concatenate([<n>, <s>], axis=<ax>)",
        "gt.hstack([<v>, <v>])",
        "gt.concatenate([<n2>, <s>])",
    ),
    *(
        "gt.tile(<r>, 2)",
        "gt.tile(<v>, (2, 1))",
        "gt.repeat(<n>, 2, axis=<ax>)",
        "gt.repeat(<r>, 2)",
    ),
    *("gt.pad(<v>, (1, 2))", "gt.pad(<n>, 1, mode='reflect')", "gt.pad(<v>, 1, mode='edge')"),
    *("gt.pad(<v>, (0, 2), mode='wrap')", "gt.split(<n>, [1], axis=<ax>)[0]", "gt.unstack(<n>)[0]"),
    *(
        "gt.array_split(<n>, 2, axis=<ax>)[0]",
        "gt.atleast_2d(<r>)",
        "gt.broadcast_arrays(<r>, <b>)[0]",
    ),
    *("gt.append(<v>, <r>)", "gt.insert(<v>, 0, <num>)", "gt.delete(<n>, 0, axis=<ax>)"),
    *("gt.meshgrid(<v>, <v>)[0]", "gt.resize(<r>, (3,))", "gt.full_like(<r>, <num>) * <b>"),
    *("gt.take(<n>, np.array([0, 0, -1]), axis=<ax>)", "gt.gather(<n>, np.array([0]), axis=<ax>)"),
    *("gt.diagflat(<v>)", "gt.linspace(gt.sum(<r>), <num>, 4)", "gt.cross(<v>, <s>)"),
    *("gt.compress(np.array([True]), <n>, axis=<ax>)", "gt.block([[<M>], [<s>]])"),
    *(
        "<n>[0]",
        "<n>[-1]",
        "<n2>[..., 0]",
        "<n>[::-1]",
        "<n>[None]",
        "<A>[:, 0]",
        "<n>[np.array([0, 0])]",
    ),
    *("<n>.at[0].set(<num>)", "<n>.at[np.array([0, 0])].add(<num>)", "<n>.at[-1].multiply(<num>)"),
    *("<A>[..., ::2]", "<A>[:, None, -1]", "<A>[np.array([0]), 0]", "<n>[<s> > 0.3].sum()"),
    *("gt.put_along_axis(<v>, np.array([0]), <num>, 0)", "gt.choose(np.array([0]), [<r>, <s>])"),
]


def _reshaped(draw: Draw) -> str | None:
    x = draw.take("f")
    if x is None:
        return None
    size = draw.first.size
    if not size:
        return None
    options = [(size,), (1, size), (-1,), (size, 1)]
    options += [(n, -1) for n in (2, 3) if size % n == 0]
    return f"gt.reshape({x}, {draw.rng.choice(options)})"


def _broadcast(draw: Draw) -> str | None:
    x = draw.take("r")
    if x is None:
        return None
    shape = draw.first.shape
    options = [(2, *shape), tuple(3 if n == 1 else n for n in shape)]
    return f"gt.broadcast_to({x}, {draw.rng.choice(options)})"


def _permuted(draw: Draw) -> str | None:
    x = draw.take("f", lambda x: x.ndim >= 2)
    if x is None:
        return None
    return f"gt.transpose({x}, {draw.rng.sample(range(draw.first.ndim), draw.first.ndim)})"


def _indexed(draw: Draw) -> str | None:
    """Return an index of slices, integers, ellipses, new axes and arrays."""
    x = draw.take("f", lambda x: x.ndim >= 1 and x.size > 0)
    if x is None:
        return None
    parts: list[str] = []
    for size in draw.first.shape:
        parts.append(_index(draw.rng, size))
        if draw.rng.random() < 0.1:
            parts.append("None")
    while len(parts) > 1 and draw.rng.random() < 0.3:
        parts[-1:] = ["..."] if "..." not in parts and draw.rng.random() < 0.5 else []
    return f"{x}[{', '.join(parts)}]"


def _index(rng: random.Random, size: int) -> str:
    kind: Any = rng.choice(["slice", "slice", "number", "array", "mask"])
    if kind == "number":
        return str(rng.randrange(-size, size))
    if kind == "array":
        return f"np.array({[rng.randrange(-size, size) for _ in range(2)]})"
    if kind == "mask":
        return f"np.array({[rng.random() < 0.7 for _ in range(size)]})"
    return rng.choice([":", "::-1", f":{size}", "1:", f"{-size}:", "::2"])


TEMPLATES: list[tuple[Template, float]] = [
    (template, weight / len(group))
    for group, weight in (
        (ELEMENTWISE, 30.0),
        (ACTIVATIONS, 12.0),
        (REDUCTIONS, 16.0),
        (LINALG, 12.0),
        (ANALYSIS, 8.0),
        (FLOW, 14.0),
        (COMPOSITIONS, 12.0),
        (SHAPES, 16.0),
        ([_reshaped, _broadcast, _permuted, _indexed, _indexed], 8.0),
    )
    for template in group
]
