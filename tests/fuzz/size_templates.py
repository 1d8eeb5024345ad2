"""Lines that compute with the sizes of their operands; ``{0}`` is the first operand again."""

from __future__ import annotations

from fuzz.templates import Template

__all__ = ["SIZES"]

NUMBERS: list[Template] = [
    *("<n> / {0}.shape[0]", "<n2> * {0}.shape[<ax>]", "gt.sum(<n>, axis=<ax>) / {0}.shape[-1]"),
    *("gt.sum(<n>) / {0}.size", "<n> * {0}.shape[0] ** -0.5", "<n> - {0}.shape[0] // 2"),
    *("<n> * (1.0 / ({0}.shape[-1] + 1))", "<n> + {0}.shape[0] % 3", "<n> / gt.shape({0})[<ax>]"),
    "gt.sum((<n> - gt.mean({0})) ** 2) / np.maximum({0}.size - 1, 1)",
    *("<n> ** {0}.shape[0] * 0.1", "<n> * (-{0}.shape[0] % 4)", "gt.clip(<n>, -9, 9 + {0}.size)"),
    *("gt.where({0}.shape[0] > 2, <n>, 0.5 * <s>)", "gt.where({0}.shape[-1] == 1, <n>, <num>)"),
    "gt.where(({0}.shape[0] > 1) & ({0}.shape[-1] < 4), <n>, gt.sin(<s>))",
    "gt.cond({0}.shape[0] > 2, lambda a: gt.sin(a), lambda a: a * 0.5, <n>)",
    "gt.cond({0}.size % 2 == 0, lambda: gt.tanh(<n>) / {0}.shape[0], lambda: {0} * 0.7)",
    "(lambda a: gt.nn.softmax(a @ gt.matrix_transpose(a) / a.shape[-1] ** 0.5) @ a)(<A>)",
]
PARTS: list[Template] = [
    *("<n>[: {0}.shape[0] // 2 + 1]", "<n>[{0}.shape[0] // 2 :]", "<n>[: {0}.shape[0] // 2]"),
    *("<n>[-({0}.shape[0] // 2) - 1 :]", "<n>[{0}.shape[0] - 1]", "<n>[..., {0}.shape[-1] // 2]"),
    *("<A>[:, : {0}.shape[1] - {0}.shape[0] // 2]", "<n>[:: np.maximum({0}.shape[0] - 1, 1)]"),
    *("<n>[{0}.shape[0] - 1 :: -1]", "<n>[{0}.shape[0] // 2 : 0 : -1]", "<n>[-{0}.shape[0] :]"),
    *(
        "<n>[1 : {0}.shape[0] - 1]",
        "<n>[1:] - {0}[:-1]",
        "<n>[::2] * {0}[: ({0}.shape[0] + 1) // 2]",
    ),
    "<n>[{0}.shape[0] - {0}.shape[0] // 2 :] * {0}[: {0}.shape[0] // 2]",
    *("<n>.at[{0}.shape[0] // 2].set(<num>)", "<n>.at[: {0}.shape[0] // 2].multiply(<num>)"),
    *("gt.split(<n>, [{0}.shape[0] // 2])[1]", "gt.split(<n>, [{0}.shape[0] // 2])[0]"),
    *(
        "gt.take(<n>, {0}.shape[0] // 2, axis=0)",
        "gt.take(<n>, gt.arange({0}.shape[0])[::-1], axis=0)",
    ),
    *(
        "gt.concatenate([<n>, <s>])[: {0}.shape[0] + 1]",
        "gt.concatenate([<n>, <s>])[{0}.shape[0] :]",
    ),
    *("gt.roll(<n>, {0}.shape[0] // 2, axis=0)", "gt.roll(<n>, -({0}.size // 3))"),
    *("gt.insert(<v>, {0}.shape[0] // 2, <num>)", "gt.delete(<v>, {0}.shape[0] // 2)"),
    *("gt.triu(<A>, {0}.shape[-1] // 2)", "gt.diag(<v>, {0}.shape[0] // 2)"),
]
SHAPES: list[Template] = [
    *("<n>[..., None] + gt.zeros(({0}.shape[-1], 2))", "<n> * gt.full({0}.shape, <num>)"),
    *(
        "gt.concatenate([<n>, gt.zeros({0}.shape)], axis=<ax>)",
        "gt.stack([<n>, gt.ones({0}.shape)])",
    ),
    "gt.concatenate([<v>, gt.ones(({0}.shape[0] // 2,))])",
    *("gt.reshape(<n>, ({0}.shape[0], -1))", "gt.reshape(<n>, (-1, {0}.shape[-1]))"),
    *("gt.reshape(<n>, ({0}.size,))", "gt.reshape(<A>, ({0}.shape[1], {0}.shape[0], -1))"),
    "gt.reshape(<A>, ({0}.shape[0] * {0}.shape[1], *{0}.shape[2:]))",
    "gt.reshape(gt.concatenate([<n>, <s>]), (2, *{0}.shape))",
    "(lambda a: gt.reshape(a[: a.shape[0] // 2 * 2], (-1, 2)))(<v>)",
    *("<n> * gt.arange({0}.shape[-1])", "<n> * gt.arange(1, {0}.shape[-1] + 1)"),
    *(
        "<n> + gt.arange({0}.shape[-1], 0, -1)",
        "gt.arange(0, {0}.shape[0], 2) * <num> + gt.sum(<n>)",
    ),
    *("<n> * gt.linspace(0.0, 1.0, {0}.shape[-1])", "<n> * gt.linspace(0, {0}.shape[0], 3)[:1]"),
    *("gt.broadcast_to(<r>, (2, *{0}.shape))", "gt.broadcast_to(gt.sum(<n>, axis=0), {0}.shape)"),
    *("gt.broadcast_to(gt.mean(<n>), ({0}.shape[0], 2))", "gt.tile(<n>, {0}.shape[0] // 2 + 1)"),
    *("gt.tile(<v>, (2, {0}.shape[0]))", "gt.repeat(<v>, {0}.shape[0] // 2 + 1)"),
    *("gt.repeat(<n>[:1], {0}.shape[0], axis=0)", "gt.pad(<v>, (0, -{0}.shape[0] % 4))"),
    *("gt.pad(<v>, ({0}.shape[0] // 2, 1))", "gt.pad(<v>, {0}.shape[0] - 1, mode='reflect')"),
    *("gt.pad(<n>, {0}.shape[0] // 2, mode='edge')", "gt.pad(<v>, (0, {0}.shape[0]), mode='wrap')"),
    *(
        "<q> + gt.eye({0}.shape[-1])",
        "<v> @ gt.eye({0}.shape[0], 3)",
        "gt.resize(<r>, ({0}.size + 1,))",
    ),
    "<v> @ gt.nn.one_hot(gt.arange({0}.shape[0])[::-1], {0}.shape[0])",
    "<v> @ gt.nn.one_hot(gt.arange({0}.shape[0]) % 2, 2)",
    *("gt.tril(gt.ones(({0}.shape[0], {0}.shape[0]))) @ <v>", "<M> @ gt.ones(({0}.shape[1], 2))"),
    "(lambda a: gt.where(gt.arange(a.shape[0])[:, None] >= gt.arange(a.shape[0]), a, 0.0))(<v>)",
    *("noise({0}.shape) * <n>", "noise(({0}.shape[0], 2)) * gt.sum(<n>)"),
    "gt.cumsum(gt.ones_like(<n>), axis=0) / {0}.shape[0] * {0}",
]
FLOW: list[Template] = [
    "gt.scan(lambda c, i: (gt.tanh(c + 0.1), c * 0.5), gt.sum(<n>), None, length={0}.shape[0])[1]",
    "gt.scan(lambda c, i: (c + <v>[i], c * 0.5), gt.sum({0}), gt.arange({0}.shape[0]))[1]",
    "gt.scan(lambda c, a: (c + a, c / <n>.shape[0]), gt.zeros({0}.shape[1:], {0}.dtype), {0})[1]",
    "gt.while_loop(lambda i, a: i < a.shape[0], lambda i, a: (i + 1, gt.sin(a)), (0, <n>))[1]",
    "gt.map(lambda a: a / <n>.shape[0], {0})",
    "gt.vmap(lambda i: <v>[i] * {0}.shape[0])(gt.arange({0}.shape[0]))",
    "gt.vmap(lambda a: a / a.shape[0])(<M>)",
    "gt.vmap(lambda a: gt.sum(a) * gt.arange(a.shape[0]) * 0.1)(<A>)",
    "gt.vmap(lambda a: gt.concatenate([a, gt.ones(a.shape)]))(<M>)",
    "gt.vmap(lambda a: a[: a.shape[0] // 2 + 1] + a[a.shape[0] - 1])(<M>)",
    "gt.grad(lambda a: gt.sum(gt.tanh(a) * <n>) / {0}.shape[0])({0})",
    "gt.recompute_grad(lambda a: gt.sin(a) / a.shape[0])(<n>)",
    "gt.function(lambda a: gt.sin(a) / a.shape[0])(<n>)",
]
ANALYSIS: list[Template] = [
    *(
        "gt.convolve(<v>, gt.ones({0}.shape[0] // 2 + 1))",
        "gt.fft.irfft(gt.fft.rfft(<n>), n={0}.shape[-1])",
    ),
    *(
        "gt.fft.rfft(<n>, n={0}.shape[-1] + 1)",
        "gt.real(gt.fft.fft(<n2>, n={0}.shape[-1] // 2 + 1))",
    ),
    "gt.nn.segment_sum(<v>, gt.arange({0}.shape[0]) // 2, ({0}.shape[0] + 1) // 2)",
    "gt.nn.avg_pool1d(gt.reshape(<n>, (1, -1, 1)), 2, padding='same') / {0}.size",
    "gt.nn.conv1d(gt.reshape(<n>, ({0}.shape[0], -1, 1)), np.ones((2, 1, 1)), padding='same')",
    *("gt.vander(<v>, {0}.shape[0] // 2 + 1)", "gt.partition(<d1>, {0}.shape[-1] // 2)"),
    "gt.nn.embedding_lookup(<M>, gt.arange({0}.shape[0])[::-1])",
]
SIZES = [*NUMBERS, *PARTS, *SHAPES, *FLOW, *ANALYSIS]
