"""L-BFGS beside PyTorch's, step by step, and SciPy's, at the minimum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import LBFGS

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((40, 3))
Y = np.tanh(X @ RANDOM.standard_normal((3, 2))) + 0.1 * RANDOM.standard_normal((40, 2))
START = [RANDOM.standard_normal(shape) for shape in ((3, 4), (4,), (4, 2))]


def network(ops: Any, x: Any, y: Any, weights: Any) -> Any:
    first, bias, second = weights
    return (((ops.tanh(x @ first + bias) @ second) - y) ** 2).mean()


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def variables() -> list[gt.Variable]:
    return [gt.Variable(x) for x in START]


def loss_of(held: Any) -> Any:
    return lambda: network(gt, gt.constant(X), gt.constant(Y), held)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("line_search", ["strong_wolfe", None])
@pytest.mark.parametrize("history_size", [3, 100])
def test_twenty_steps_are_pytorchs(line_search: Any, history_size: int, traced: bool) -> None:
    torch = pytest.importorskip("torch")
    mine, theirs = variables(), [torch.nn.Parameter(torch.tensor(x)) for x in START]
    rate = 1.0 if line_search else 0.1
    one = LBFGS(rate, 4, 30, history_size=history_size, line_search=line_search)
    two = torch.optim.LBFGS(
        theirs, rate, 4, 30, history_size=history_size, line_search_fn=line_search
    )
    x, y = torch.tensor(X), torch.tensor(Y)

    def closure() -> Any:
        two.zero_grad()
        loss = network(torch, x, y, theirs)
        loss.backward()
        return loss

    loss = gt.function(loss_of(mine)) if traced else loss_of(mine)
    for _ in range(20):
        one.minimize(loss, mine)
        two.step(closure)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=2e-4, atol=1e-6)
    assert one.iterations.item() == two.state[theirs[0]]["n_iter"]


def test_the_minimum_is_scipys() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    start = np.linspace(-1.5, 1.5, 12)
    held = gt.Variable(start)
    LBFGS(max_iterations=500, tolerance_change=1e-14).minimize(lambda: rosenbrock(held), [held])
    slope = gt.function(gt.grad(rosenbrock))
    found = optimize.minimize(
        rosenbrock, start, jac=lambda x: slope(gt.constant(x)).numpy(), method="L-BFGS-B"
    )
    np.testing.assert_allclose(held.numpy(), found.x, atol=1e-4)
    np.testing.assert_allclose(held.numpy(), np.ones(12), atol=1e-7)


@pytest.mark.parametrize("how", ["file", "checkpoint"])
def test_saved_on_the_way_it_goes_on_bit_by_bit(how: str, tmp_path: Path) -> None:
    def fresh() -> gt.Module:
        root = gt.Module()
        root.weights, root.optimizer = variables(), LBFGS(max_iterations=3, history_size=4)
        return root

    root = fresh()
    for _ in range(3):
        root.optimizer.minimize(loss_of(root.weights), root.weights)
    if how == "file":
        gt.save(root, tmp_path / "root.h5", golden=False)
        twin = gt.load(tmp_path / "root.h5")
    else:
        gt.training.Checkpoint(root=root).save(tmp_path / "root.h5")
        twin = fresh()
        gt.training.Checkpoint(root=twin).restore(tmp_path / "root.h5")
    assert twin.optimizer.get_config() == root.optimizer.get_config()
    for one in (root, twin):
        for _ in range(2):
            one.optimizer.minimize(loss_of(one.weights), one.weights)
    bits = [
        {path: v.numpy().tobytes() for path, v in one.named_variables.items()}
        for one in (root, twin)
    ]
    assert bits[0] == bits[1]


def test_steps_of_single_precision_descend() -> None:
    held = [gt.Variable(x.astype("float32")) for x in START]
    loss = loss_of(held)
    before = loss().item()
    LBFGS(max_iterations=50).minimize(loss, lambda: held)
    assert loss().item() < 0.1 * before
    assert {v.dtype.name for v in held} == {"float32"}


def test_at_the_minimum_nothing_moves() -> None:
    w = gt.Variable(np.zeros(2))
    optimizer = LBFGS()
    optimizer.minimize(lambda: gt.sum(w * w), [w])
    assert w.numpy().tolist() == [0.0, 0.0]
    assert optimizer.iterations.item() == 0


@pytest.mark.parametrize("line_search", ["strong_wolfe", None])
def test_a_loss_that_fails_leaves_the_variables(line_search: Any) -> None:
    w, calls = gt.Variable(np.ones(2), name="w"), []

    def loss() -> Any:
        calls.append(None)
        if len(calls) > 2:
            raise RuntimeError("no data")
        return gt.sum(w**4)

    optimizer = LBFGS(0.01, line_search=line_search)
    with pytest.raises(RuntimeError, match="no data"):
        optimizer.minimize(loss, [w])
    assert w.numpy().tolist() == [1.0, 1.0]
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="the loss is nan"):
        optimizer.minimize(lambda: gt.sum(gt.log(w - 2.0)), [w])
    with pytest.raises(ValueError, match=r"gradient of variable 'w' .* is None"):
        optimizer.minimize(lambda: gt.constant(1.0), [w])
    assert w.numpy().tolist() == [1.0, 1.0]
    assert optimizer.iterations.item() == 0


def test_a_loss_that_ends_at_a_wall_is_searched_before_it() -> None:
    w = gt.Variable(np.array([0.5]))
    with np.errstate(all="ignore"):
        LBFGS(30.0, 40).minimize(lambda: gt.sum(w - 2.0 * gt.log(3.0 - w) - gt.log(w)), [w])
    slope = 1.0 + 2.0 / (3.0 - w.item()) - 1.0 / w.item()
    assert abs(slope) < 1e-4


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda o, w: o.apply_gradients([(w, w)]), TypeError, r"call minimize\(loss, variables\)"),
        (lambda o, w: o.minimize(gt.sum(w), [w]), TypeError, "pass a function"),
        (
            lambda o, w: gt.function(lambda: o.minimize(lambda: gt.sum(w), [w]))(),
            gt.errors.TraceError,
            "cannot be traced",
        ),
        (
            lambda o, w: o.minimize(lambda: gt.sum(w), [w, gt.Variable(np.float32(1))]),
            TypeError,
            "one real floating dtype, got .'float32', 'float64'.",
        ),
        (lambda o, w: LBFGS(line_search="armijo"), ValueError, "'strong_wolfe' or None"),
        (lambda o, w: LBFGS(history_size=0), ValueError, "history_size must be a positive integer"),
        (lambda o, w: LBFGS(tolerance_change=-1.0), ValueError, "must not be negative"),
    ],
)
def test_what_it_cannot_do_it_says(call: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        call(LBFGS(), gt.Variable(np.ones(2)))


# -- losses that are not smooth --------------------------------------------------------------------


POINTS, LABELS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]), np.array([1.0, -1.0, 1.0])
#: The loss of a vector, the start, and the least value if there is one.
DEGENERATE: dict[str, tuple[Any, list[float], float | None]] = {
    "l1": (lambda x: gt.sum(gt.abs(x - 0.3)), [3.0, 1.0], 0.0),
    "largest": (lambda x: gt.max(gt.abs(x - 0.3)), [0.0, 1.0], 0.0),
    "mae": (lambda x: gt.mean(gt.abs(gt.constant(POINTS) @ x - LABELS)), [0.0, 0.0], 7 / 15),
    "hinge": (lambda x: gt.mean(gt.nn.relu(1.0 - LABELS * (POINTS @ x))), [0.0, 0.0], 0.0),
    "linear": (lambda x: gt.sum(x), [0.0, 0.0], None),
    "constant": (lambda x: gt.sum(0.0 * x) + 1.0, [0.0, 0.0], 1.0),
    "flat at the start": (lambda x: gt.sum(x**4), [0.0, 0.0], 0.0),
    "unbounded": (lambda x: -gt.sum(x * x), [1.0, 0.1], None),
    "unbounded and fast": (lambda x: -gt.sum(gt.exp(x)), [1.0, 0.1], None),
    "steep": (lambda x: gt.sum(gt.sqrt(x)), [0.0, 1.0], None),
    "not a number": (lambda x: gt.sum(gt.log(x)), [-1.0, 1.0], None),
    "infinite": (lambda x: gt.sum(1.0 / x), [0.0, 1.0], None),
    "an edge": (lambda x: gt.sum(x - gt.log(x)), [5.0, 0.1], 2.0),
    "huge": (lambda x: 1e300 * gt.sum(x * x), [1.0, 1.0], 0.0),
}


@pytest.mark.parametrize("search", ["strong_wolfe", None])
@pytest.mark.parametrize("name", DEGENERATE)
def test_a_degenerate_loss_gets_its_minimum_or_words(name: str, search: str | None) -> None:
    loss, start, least = DEGENERATE[name]
    x = gt.Variable(np.array(start))
    optimizer = LBFGS(max_iterations=200, line_search=search)
    refusal = None
    with np.errstate(all="ignore"):
        before = float(loss(x))
        try:
            optimizer.minimize(lambda: loss(x), [x])
        except FloatingPointError as error:
            refusal = str(error)
        after = float(loss(x))
    if refusal is not None:
        assert "variables are as they were" in refusal
        assert x.numpy().tolist() == start
        return
    assert np.isfinite(x.numpy()).all()
    if search is not None:  # steps of a fixed length may rise
        assert after <= before
        assert least is None or after <= least + 5e-2


def test_variables_take_turns() -> None:
    a, b = gt.Variable([1.0, 2.0]), gt.Variable(3.0)
    optimizer = LBFGS()
    for chosen in ([a], [b], [a, b], [b]):
        optimizer.minimize(lambda: gt.sum(a * a) + (b - 1.0) ** 2, chosen)
    np.testing.assert_allclose([*a.numpy(), b.item()], [0.0, 0.0, 1.0], atol=1e-4)
