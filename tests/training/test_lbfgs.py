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


@pytest.mark.parametrize("options", [{}, {"learning_rate": 0.3, "line_search": None}])
def test_variables_take_turns(options: dict[str, Any]) -> None:
    a, b = gt.Variable([1.0, 2.0]), gt.Variable(3.0)
    optimizer = LBFGS(**options)
    for chosen in ([a], [b], [a, b], [b], [a, b], [a, b]):
        optimizer.minimize(lambda: gt.sum(a * a) + (b - 1.0) ** 2, chosen)
    np.testing.assert_allclose([*a.numpy(), b.item()], [0.0, 0.0, 1.0], atol=1e-2)


# -- calls that cannot be what was meant ----------------------------------------------------------


def regression(dropout: float = 0.0) -> tuple[gt.Module, Any, Any]:
    gt.random.set_seed(0)
    model = gt.layers.Sequential(
        [gt.layers.Dense(8, activation="tanh"), gt.layers.Dropout(dropout), gt.layers.Dense(1)]
    )
    x = RANDOM.standard_normal((60, 3)).astype("float32")
    model(x)
    return model, x, np.sin(x[:, :1])


@pytest.mark.parametrize("compile", ["auto", True, False])
def test_fit_refuses_it_before_anything_runs(compile: Any) -> None:
    model, x, y = regression()
    before = [v.numpy() for v in model.variables]
    with pytest.raises(TypeError, match=r"fit: LBFGS evaluates .* LBFGS\(\)\.minimize\(loss"):
        gt.training.fit(model, (x, y), loss="mse", optimizer=LBFGS(), compile=compile)
    for old, v in zip(before, model.variables, strict=True):
        np.testing.assert_array_equal(old, v.numpy())


def test_an_optimizer_of_a_plugin_may_say_that_it_evaluates_losses() -> None:
    class Searching(gt.training.SGD):
        takes_gradients = False

    model, x, y = regression()
    with pytest.raises(TypeError, match="fit: Searching evaluates the loss"):
        gt.training.fit(model, (x, y), loss="mse", optimizer=Searching())
    with pytest.raises(TypeError, match="Searching evaluates losses itself"):
        gt.mixed_precision.LossScaleOptimizer(Searching())


def test_a_loss_that_differs_from_call_to_call_is_refused() -> None:
    model, x, y = regression(dropout=0.5)
    before = [v.numpy() for v in model.trainable_variables]
    with pytest.raises(ValueError, match=r"for the same variables.*training=False"):
        LBFGS().minimize(
            lambda: gt.mean((model(x, training=True) - y) ** 2), model.trainable_variables
        )
    for old, v in zip(before, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(old, v.numpy())
    optimizer = LBFGS(0.01, line_search=None)
    with pytest.warns(RuntimeWarning, match="for the same variables, so changes of its gradient"):
        optimizer.minimize(
            lambda: gt.mean((model(x, training=True) - y) ** 2), model.trainable_variables
        )


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("search", ["strong_wolfe", None])
def test_other_data_in_the_next_call_get_one_warning(search: Any, steps: int) -> None:
    model, x, y = regression()
    optimizer = LBFGS(0.01, max_iterations=steps, line_search=search)

    def use(rows: slice) -> None:
        optimizer.minimize(
            lambda: gt.mean((model(x[rows]) - y[rows]) ** 2), model.trainable_variables
        )

    use(slice(0, 30))
    if search is not None:  # others look in the second call only
        use(slice(0, 30))
    with pytest.warns(RuntimeWarning, match="the data or the loss are others"):
        use(slice(30, 60))
    use(slice(0, 30))  # told once: warnings are errors here


@pytest.mark.parametrize(
    ("loss", "kind", "message"),
    [
        (lambda w: w * w, ValueError, r"one number, got shape \(2,\); use gt.mean"),
        (lambda w: float(gt.sum(w)), TypeError, "must return a tensor, got float"),
        (lambda w: gt.sum(w).numpy(), TypeError, "must return a tensor, got "),
        (lambda w: (gt.sum(w), w), TypeError, "must return a tensor, got tuple"),
        (lambda w: None, TypeError, "must return a tensor, got NoneType"),
    ],
)
def test_what_is_no_loss_is_refused(loss: Any, kind: Any, message: str) -> None:
    w = gt.Variable(np.ones(2))
    with pytest.raises(kind, match=message):
        LBFGS().minimize(lambda: loss(w), [w])
    assert w.numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("optimizer", [LBFGS, gt.training.Adam])
def test_variables_are_a_list(optimizer: Any) -> None:
    model, *_ = regression()
    w = gt.Variable(np.ones(2, "float32"))
    for given, message in (
        (w, r"write \[variable\]"),
        (model, "pass model.trainable_variables"),
        ([w.value], "expected variables, got Tensor"),
    ):
        with pytest.raises(TypeError, match=message):
            optimizer().minimize(lambda: gt.sum(w * w), given)


@pytest.mark.parametrize(
    ("options", "stopped"),
    [
        ({}, "tolerance_gradient"),
        ({"tolerance_gradient": 0.0, "tolerance_change": 1e-3}, "tolerance_change"),
        ({"max_iterations": 2}, "max_iterations"),
        ({"max_iterations": 9, "max_evaluations": 2}, "max_evaluations"),
    ],
)
def test_it_says_which_argument_ended_a_call(options: dict[str, Any], stopped: str) -> None:
    w = gt.Variable(np.array([-1.5, 2.0]))
    optimizer = LBFGS(**{"max_iterations": 200, "max_evaluations": 500, **options})
    assert optimizer.stopped is None
    if stopped == "tolerance_gradient":
        optimizer.minimize(lambda: gt.sum(w * w), [w])
    else:
        optimizer.minimize(lambda: rosenbrock(w), [w])
    assert optimizer.stopped == stopped


@pytest.mark.parametrize("most", [6, 500])
def test_fixed_steps_end_at_the_limit_of_steps(most: int) -> None:
    x = gt.Variable(np.array([1.0, 2.0]))
    optimizer = LBFGS(0.1, 5, most, line_search=None)
    optimizer.minimize(lambda: gt.sum((x - 3.0) ** 4), [x])
    assert np.abs(x.numpy() - 3.0).max() > 0.5
    assert optimizer.stopped == "max_iterations"
    assert optimizer.iterations.item() == 5


def test_a_line_search_that_runs_out_of_evaluations_says_so() -> None:
    x = gt.Variable(np.array([1.0]))
    optimizer = LBFGS(1e6, 20, 1)
    optimizer.minimize(lambda: gt.sum((x - 3.0) ** 2), [x])
    assert x.numpy().tolist() == [1.0]
    assert optimizer.stopped == "max_evaluations"


def test_a_loss_may_be_a_writable_array() -> None:
    x = gt.Variable(np.array([1.0, 2.0]))

    def loss() -> Any:
        parts = gt.writable(np.zeros(2))
        parts[0] = (x[0] - 3.0) ** 2
        parts[1] = (x[1] - 4.0) ** 2
        return parts.sum()

    assert type(loss()).__name__ == "WritableArray"
    for minimize in (LBFGS().minimize, gt.training.SGD(0.1).minimize):
        minimize(loss, [x])
    np.testing.assert_allclose(x.numpy(), [3.0, 4.0], atol=1e-6)


def test_a_loss_may_have_one_element_on_an_axis() -> None:
    w = gt.Variable(np.array([3.0]))
    LBFGS().minimize(lambda: w * w, [w])
    assert abs(w.numpy()[0]) < 1e-6


def test_copies_and_files_minimize_on(tmp_path: Path) -> None:
    import copy
    import pickle

    w = gt.Variable(np.array([-1.5, 2.0]))
    optimizer = LBFGS(max_iterations=3, max_evaluations=9)
    optimizer.minimize(lambda: rosenbrock(w), [w])
    gt.save(optimizer, tmp_path / "o.h5")
    for twin in (
        copy.deepcopy(optimizer),
        pickle.loads(pickle.dumps(optimizer)),
        gt.load(tmp_path / "o.h5"),
    ):
        v = gt.Variable(w.numpy())
        twin.minimize(lambda v=v: rosenbrock(v), [v])
        assert twin.stopped == "max_iterations"
        assert twin.iterations.item() == 6
