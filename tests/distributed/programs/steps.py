"""Collectives, data-parallel steps, random numbers and BatchNorm, against one process."""

from __future__ import annotations

from typing import Any

import numpy as np
from checking import RANK, SIZE, alike, apart, even, group, refusal, rows, total, uneven

import gradtape as gt

N = 12
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(N, 5)).astype("float32")
Y = DRAW.normal(size=(N, 3)).astype("float32")
OPS = gt.registry().ops

LINEAR = {
    "sum": lambda x: gt.distributed.all_reduce(x),
    "mean": lambda x: group.all_reduce(x, "mean"),
    "gather": lambda x: group.all_gather(x, axis=1),
    "stack": lambda x: group.all_gather(x),
    "scatter": lambda x: group.reduce_scatter(x, axis=1),
    "broadcast": lambda x: group.broadcast(x, root=SIZE - 1),
    "average": lambda x: OPS["average_over_ranks"](0.5 + RANK, x, x * 2.0)[1],
}
CURVED = {
    **{name: (lambda x, f=f: f(gt.sin(x))) for name, f in LINEAR.items()},
    "max": lambda x: group.all_reduce(x, "max"),
    "prod": lambda x: group.all_reduce(x, "prod"),
}


def mine(shape: Any, seed: int) -> Any:
    return np.random.default_rng([seed, RANK]).normal(size=shape)


def collectives() -> dict[str, Any]:
    """Values, by what all ranks give; forward mode and batches, by linearity."""
    shape = (2, SIZE)
    every = np.stack([np.random.default_rng([1, r]).normal(size=shape) for r in range(SIZE)])
    weights = np.arange(SIZE)[:, None, None] * 0 + 1.0
    expected = {
        "sum": every.sum(0),
        "mean": every.mean(0),
        "gather": np.concatenate(every, axis=1),
        "stack": every,
        "scatter": every.sum(0)[:, RANK : RANK + 1],
        "broadcast": every[-1],
        "average": 2 * (every * weights).sum(0) / sum(0.5 + r for r in range(SIZE)),
    }
    x, v = gt.constant(mine(shape, 1)), gt.constant(mine(shape, 2))
    found: dict[str, Any] = {}
    for name, f in LINEAR.items():
        values = apart(f(x), expected[name])
        with gt.ForwardAccumulator(x, v) as forward:
            y = f(x)
        pushed = apart(forward.jvp(y), f(v))
        both = gt.vmap(f)(gt.stack([x, v]))
        rows_apart = max(apart(both[0], f(x)), apart(both[1], f(v)))
        traced = apart(gt.function(f)(x), f(x))
        found[name] = max(total(e) for e in (values, pushed, rows_apart, traced))
    return found


def dtypes() -> list[Any]:
    """Arrays without elements, and dtypes that sums leave or exceed."""
    wrong = []
    for dtype in ("float16", "complex64", "int8", "bool", "uint32"):
        for shape in ((0,), (0, 3), (3, 0), ()):
            x = np.ones(shape, dtype)
            found = [group.all_gather(x), group.broadcast(x)]
            known = [np.stack([x] * SIZE), x]
            if shape:
                found += [group.all_gather(x, axis=-1)]
                known += [np.concatenate([x] * SIZE, axis=-1)]
            if dtype != "bool":
                found += [group.all_reduce(x, how) for how in ("sum", "max", "prod")]
                known += [x * np.array(SIZE, dtype), x, x]
            for i, (a, b) in enumerate(zip(found, known, strict=True)):
                if a.dtype != dtype or a.shape != b.shape or (a.numpy() != b).any():
                    wrong.append([dtype, shape, i])
    zeros = [group.all_reduce(np.full(size, -0.0)).numpy() for size in (3, 3000)]
    wrong += [["-0.0", x.size] for x in zeros if not np.signbit(x).all()]
    large = group.all_reduce(np.full(2, 60000, "float16"), "mean")  # the sum is an infinity
    return wrong if large.dtype == "float16" and large.tolist() == [60000.0] * 2 else ["mean"]


def derivatives() -> dict[str, Any]:
    """First and second order, of the sum of all ranks' targets, against differences."""
    found: dict[str, Any] = {}
    for name, f in CURVED.items():
        x, v, w = (gt.constant(mine((2, SIZE), seed)) for seed in (3, 4, 5))
        shape = f(x).shape
        c = gt.constant(mine(shape, 6))

        def target(x: Any, f: Any = f, c: Any = c) -> Any:
            return gt.sum(c * f(x) ** 2)

        def slope(x: Any, target: Any = target, w: Any = w) -> Any:
            with gt.GradientTape() as tape:
                tape.watch(x)
                y = target(x)
            return gt.sum(tape.gradient(y, x) * w)

        def along(f: Any, x: Any = x, v: Any = v) -> tuple[float, float]:
            with gt.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            exact = total(gt.sum(tape.gradient(y, x) * v).item())
            h = 1e-6
            return exact, (total(f(x + h * v).item()) - total(f(x - h * v).item())) / (2 * h)

        pairs = [along(g) for g in (target, slope, gt.function(target), gt.function(slope))]
        found[name] = max(abs(a - b) / (1 + abs(b)) for a, b in pairs)
    return found


def network() -> Any:
    gt.random.set_seed(1)
    layers = [gt.layers.Dense(7, activation="tanh"), gt.layers.Dense(3)]
    model = gt.layers.Sequential(layers)
    model(gt.constant(X))
    return model


def trained(step: Any, shares: Any, parallel: bool, **options: Any) -> tuple[Any, Any]:
    """Do steps on shares of the batch, by all ranks or by this one alone."""
    model, optimizer = network(), gt.training.Adam(0.05, global_clipnorm=1.0)
    run = lambda x, y: step(model, optimizer, x, y)  # noqa: E731
    if parallel:
        run = group.data_parallel(run, **options)
    losses = []
    for counts in shares:
        part = rows(counts) if parallel else slice(0, sum(counts))
        losses.append([x.item() for x in run(gt.constant(X[part]), gt.constant(Y[part]))])
    return losses, [v.numpy() for v in model.trainable_variables]


def plain(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    with gt.GradientTape() as tape:
        loss = gt.mean((model(x) - y) ** 2)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss, gt.mean(gt.abs(model(x) - y))


def penalized(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    """A penalty on the gradient of the whole batch: second order."""
    variables = model.trainable_variables
    with gt.GradientTape() as outer:
        with gt.GradientTape() as tape:
            loss = gt.mean((model(x) - y) ** 2)
        grads = tape.gradient(loss, variables)
        size = sum((gt.sum(g * g) for g in grads), gt.constant(0.0))
        whole = loss + 0.1 * size
    optimizer.apply_gradients(zip(outer.gradient(whole, variables), variables, strict=True))
    return whole, size


def of_inputs(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    """A penalty on slopes by inputs, which are each rank's own; and batches inside the step."""
    variables = model.trainable_variables
    with gt.GradientTape() as outer:
        with gt.GradientTape() as tape:
            tape.watch(x)
            loss = gt.mean(gt.vmap(lambda a, b: gt.mean((model(a[None])[0] - b) ** 2))(x, y))
        slopes = tape.gradient(loss, x) * x.shape[0]
        whole = loss + 0.1 * gt.mean(gt.sum(slopes**2, axis=1))
    optimizer.apply_gradients(zip(outer.gradient(whole, variables), variables, strict=True))
    return whole, loss


def summed(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    with gt.GradientTape() as tape:
        loss = gt.sum((model(x) - y) ** 2)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss, loss * 2.0


def accumulated(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    """By forward mode beside the tape: a derivative along a direction in the returned numbers."""
    with gt.ForwardAccumulator(x, gt.ones_like(x)) as forward:
        predicted = model(x)
    told = gt.mean(forward.jvp(predicted))
    loss, _ = plain(model, optimizer, x, y)
    return loss, told


def data_parallel() -> dict[str, Any]:
    """Losses, weights and what steps return, against one process on the whole batch."""
    found: dict[str, Any] = {}
    shares = [even(N), even(N), uneven(N), even(N - SIZE)]
    first_uneven = shares[::-1][1:] + shares[:1]
    cases = {
        "plain": (plain, {}),
        "penalized": (penalized, {}),
        "of_inputs": (of_inputs, {}),
        "forward": (accumulated, {}),
        "sum": (summed, {"reduction": "sum"}),
    }
    for name, (step, options) in cases.items():
        shares = first_uneven if name == "forward" else shares
        reference, kept = trained(step, shares, parallel=False)
        for compiled in (True, False):
            losses, weights = trained(step, shares, parallel=True, compile=compiled, **options)
            found[f"{name}, compile={compiled}"] = {
                "losses": max(apart(a, b) for a, b in zip(losses, reference, strict=True)),
                "weights": max(apart(a, b) for a, b in zip(weights, kept, strict=True)),
                "alike": alike(weights),
            }
    return found


def buckets() -> dict[str, Any]:
    """Messages of any size, on their way during the backward pass: bit for bit as in one."""
    shares = [even(N), uneven(N), even(N)]
    found: dict[str, Any] = {}
    for name, step in (("plain", plain), ("penalized", penalized)):
        reference, kept = trained(step, shares, parallel=True)
        for size in (1, 80):
            losses, weights = trained(step, shares, parallel=True, bucket_bytes=size)
            same = all(np.array_equal(a, b) for a, b in zip(weights, kept, strict=True))
            found[f"{name}, {size} bytes"] = same and losses == reference
    # where they begin and end, in the graph of a step
    model, optimizer = network(), gt.training.SGD(0.1)
    step = group.data_parallel(lambda x, y: plain(model, optimizer, x, y), bucket_bytes=1)
    x, y = gt.constant(X[rows(even(N))]), gt.constant(Y[rows(even(N))])
    step(x, y)
    (traced,) = step._traced.concrete_functions
    names = [getattr(node.op, "name", "") for node in traced.graph.nodes]
    first, last = (names.index(f"{half}_average_over_ranks") for half in ("begin", "end"))
    found["computes meanwhile"] = "matmul_adjoint_y" in names[first:last]
    return found


def held_results() -> bool:
    """What somebody still holds stays as it is, a part of it too; other memory is used again."""
    x = gt.constant(np.full(1000, 1.0 + RANK, "float32"))
    held = [group.all_reduce(x * float(i)) for i in range(4)]
    part = group.all_reduce(x * 10.0).numpy()[500:]
    averages = [OPS["average_over_ranks"](1.0, x * float(i))[0] for i in range(4)]
    for _ in range(4):
        group.all_reduce(x * 99.0)
        OPS["average_over_ranks"](1.0, x * 99.0)
    whole = sum(1.0 + r for r in range(SIZE))
    return (
        all((y.numpy() == whole * i).all() for i, y in enumerate(held))
        and bool((part == whole * 10.0).all())
        and all(np.allclose(y.numpy(), whole * i / SIZE) for i, y in enumerate(averages))
    )


def inner_functions() -> bool:
    """A function that was traced before, alone, reduces where a step calls it eagerly."""
    w = gt.Variable(1.0)

    @gt.function
    def slope(x: Any) -> Any:
        with gt.GradientTape() as tape:
            y = gt.mean(w * x)
        return tape.gradient(y, w)

    x = gt.constant([float(RANK + 1)] * 2)
    alone = slope(x).item()
    step = group.data_parallel(slope, compile=False, outputs="local")
    mean = (SIZE + 1) / 2
    return bool(alone == RANK + 1 and step(x).item() == mean and slope(x).item() == RANK + 1)


def draws(x: Any) -> list[Any]:
    n = x.shape[0]
    return [
        gt.nn.dropout(x, 0.5),
        gt.random.normal((n, 3)),
        gt.random.uniform((n, 2)),
        gt.random.uniform((n, 3), dtype="float64"),
        gt.random.randint((n,), 0, 10),
        gt.nn.dropout(gt.reshape(gt.concatenate([x, x[:, :1]], axis=1), (-1, 3)), 0.5),
        GENERATOR.gamma((n, 5), gt.abs(x) + 0.1),
        gt.random.normal((7,)),
        gt.vmap(lambda row: gt.nn.dropout(row, 0.3), randomness="different")(x),
        GENERATOR.truncated_normal((n,)),
        GENERATOR.exponential((n, 2)),
        gt.random.categorical(x),
        GENERATOR.bernoulli((n,)),
    ]


GENERATOR = gt.random.Generator(3)


def random_numbers() -> list[Any]:
    """Each rank draws its rows of what one process draws for the whole batch, bit for bit."""
    wrong = []
    for compiled in (True, False):
        for counts in (even(N), uneven(N)):
            step = group.data_parallel(draws, outputs="local", compile=compiled)
            step(gt.constant(X[rows(even(N))]))
            gt.random.set_seed(5)
            GENERATOR.set_seed(4)
            whole = draws(gt.constant(X))
            gt.random.set_seed(5)
            GENERATOR.set_seed(4)
            part = rows(counts)
            for i, (a, b) in enumerate(zip(whole, step(gt.constant(X[part])), strict=True)):
                times = len(a) // N if len(a) % N == 0 else 0
                mine = a.numpy()[part.start * times : part.stop * times] if times else a.numpy()
                if mine.shape != b.shape or not (mine == b.numpy()).all():
                    wrong.append([compiled, counts, i])
    return wrong


def batch_norm() -> dict[str, Any]:
    """Statistics of all ranks' examples, with masks and uneven shares."""
    found: dict[str, Any] = {}
    draw = np.random.default_rng(2)
    x = (draw.normal(size=(N, 4, 5)) * 3 + 10).astype("float32")
    y = draw.normal(size=(N, 4, 3)).astype("float32")
    mask = draw.random((N, 4)) > 0.3
    for masked, axis in ((False, -1), (False, 1), (True, -1)):
        for compiled in (True, False):
            results = []
            for parallel in (True, False):
                gt.random.set_seed(1)
                norm = gt.layers.BatchNorm(axis=axis, synchronized=parallel, momentum=0.5)
                first, last = gt.layers.Dense(7, use_bias=False), gt.layers.Dense(3)
                variables: list[Any] = []
                optimizer = gt.training.SGD(0.05)

                def step(
                    x: Any,
                    y: Any,
                    mask: Any,
                    norm: Any = norm,
                    first: Any = first,
                    last: Any = last,
                    variables: Any = variables,
                    optimizer: Any = optimizer,
                    masked: bool = masked,
                ) -> Any:
                    with gt.GradientTape() as tape:
                        h = norm(first(x), training=True, mask=mask if masked else None)
                        loss = gt.mean((last(gt.tanh(h)) - y) ** 2)
                    pairs = zip(tape.gradient(loss, variables), variables, strict=True)
                    optimizer.apply_gradients(pairs)
                    return loss

                last(gt.tanh(norm(first(gt.constant(x)))))
                variables += [v for m in (first, norm, last) for v in m.trainable_variables]
                run = group.data_parallel(step, compile=compiled) if parallel else step
                losses = []
                for counts in (even(N), uneven(N), even(N)):
                    part = rows(counts) if parallel else slice(0, sum(counts))
                    losses.append(run(*(gt.constant(z[part]) for z in (x, y, mask))).item())
                state = [v.numpy() for v in (*variables, norm.moving_mean, norm.moving_variance)]
                results.append((losses, state))
            (losses, state), (reference, kept) = results
            found[f"masked={masked}, axis={axis}, compile={compiled}"] = {
                "losses": apart(losses, reference),
                "weights": max(apart(a, b) for a, b in zip(state, kept, strict=True)),
                "alike": alike(state),
            }
    return found


def refusals() -> dict[str, list[str]]:
    """What a step cannot do, told to every rank."""
    w = gt.Variable([1.0, 2.0])
    x = gt.constant([[1.0, 2.0], [3.0, 4.0]])

    def asked(target: Any, sources: Any, method: str = "gradient") -> Any:
        def step(x: Any) -> Any:
            with gt.GradientTape() as tape:
                tape.watch(x)
                y = target(x)
            getattr(tape, method)(y, sources(x))
            return gt.mean(x)

        return step

    def mean(x: Any) -> Any:
        return gt.mean(w * x)

    before = w.numpy()

    divisor = gt.constant(0.0 if RANK == SIZE - 1 else 1.0)  # a number would be other code

    def bad(x: Any) -> Any:
        with gt.GradientTape() as tape:
            loss = gt.mean(w * x) / divisor
        gt.training.SGD(1.0).apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    def unlike(x: Any) -> Any:
        v = gt.Variable(float(RANK))
        with gt.GradientTape() as tape:
            loss = gt.mean(v * x)
        tape.gradient(loss, v)
        return loss

    steps = {
        "vector": asked(lambda x: w * x[0], lambda x: w),
        "mixture": asked(mean, lambda x: [w, x]),
        "jacobian": asked(mean, lambda x: w, "jacobian"),
        "matrix": lambda x: x,
        "python": lambda x: 1.0,
        "integer": lambda x: gt.argmax(x),
        "not finite": bad,
        "unlike": unlike,
    }
    found = {}
    for name, step in steps.items():
        for compiled in (True, False):
            run = group.data_parallel(step, compile=compiled)
            with np.errstate(all="ignore"):
                found[f"{name}, compile={compiled}"] = refusal(lambda run=run: run(x))

    def curved(x: Any) -> Any:
        with gt.GradientTape() as outer:
            with gt.GradientTape() as tape:
                loss = gt.sum(w * w * x)
            size = gt.sum(tape.gradient(loss, w) ** 2)
        return gt.sum(outer.gradient(size, w))

    v = gt.Variable([1.0, 1.0])

    def changing(x: Any, both: bool | None = None) -> Any:
        with gt.GradientTape() as tape:
            loss = gt.mean(w * x) + gt.mean(v)
        both = x.shape[0] == 3 if both is None else both
        tape.gradient(loss, [w, v] if both else w)
        return loss

    last, three = RANK == SIZE - 1, gt.ones((3, 2))
    for size in (1, 1000):
        step = group.data_parallel(changing, bucket_bytes=size)
        step(x)
        # that rank alone traces again
        found[f"traced again, {size}"] = refusal(lambda step=step: last and step(three))
        step(x)
        step = group.data_parallel(changing, bucket_bytes=size)
        for both in (False, True, False):  # all ranks alike
            step(x if last else three, both)
        found[f"another flag, {size}"] = refusal(lambda step=step: step(x, last))

    summed_twice = group.data_parallel(curved, reduction="sum")
    found["second order of a sum"] = refusal(lambda: summed_twice(x))
    part = x if RANK else x[:0]
    found["empty"] = refusal(lambda: group.data_parallel(lambda x: gt.mean(x))(part))
    inner = group.data_parallel(mean)
    found["nested"] = refusal(lambda: group.data_parallel(lambda x: inner(x))(x))
    assert (w.numpy() == before).all()
    return found


def variables() -> list[Any]:
    """The values of one rank for all of them."""
    model = gt.layers.Dense(3)
    model(gt.constant(X))  # of random numbers that each rank draws for itself
    model.bias.assign([float(RANK)] * 3)
    gt.distributed.broadcast_variables(model, root=SIZE - 1)
    other = gt.Variable(np.zeros(2 + (RANK == 1)))
    told = refusal(lambda: gt.distributed.broadcast_variables([other]))
    return [alike([v.numpy() for v in model.variables]), model.bias.tolist(), told]


CHECKS = [
    collectives,
    dtypes,
    derivatives,
    data_parallel,
    buckets,
    held_results,
    inner_functions,
    random_numbers,
    batch_norm,
    refusals,
    variables,
]
