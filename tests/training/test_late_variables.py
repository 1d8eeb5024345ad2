"""Every optimizer, on variables that take part in different steps, and on constant gradients.

What happens to a variable depends on its own steps alone, as if it had an optimizer of its own.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import training
from gradtape.training import SGD, Adam, Optimizer

#: Values that say more than a flag, for arguments that some constructor has.
VALUES: dict[str, dict[str, Any]] = {
    "momentum": {"momentum": 0.9},
    "nesterov": {"momentum": 0.9, "nesterov": True},
    "weight_decay": {"weight_decay": 0.1},
    "ema_overwrite_frequency": {"use_ema": True, "ema_overwrite_frequency": 2},
    "gradient_accumulation_steps": {"gradient_accumulation_steps": 2, "use_ema": True},
    "clipvalue": {"clipvalue": 0.5, "gradient_accumulation_steps": 3},
}


class Counted(Optimizer):
    """An optimizer of one's own without state, whose steps depend on their number."""

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        return (rate / step,)

    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        return value - settings[0] * gradient, state


def cases() -> Iterator[Any]:
    """Yield every optimizer that takes gradients, with each argument that changes its steps."""
    found = [x for x in vars(training).values() if isinstance(x, type)]
    own = training.LBFGS.apply_gradients
    for kind in (*found, Counted):
        if not issubclass(kind, Optimizer) or kind in (Optimizer,) or kind.apply_gradients is own:
            continue
        arguments = {
            name: parameter.default
            for x in (kind, Optimizer)
            for name, parameter in inspect.signature(x).parameters.items()
        }
        flags = {name: {name: True} for name, default in arguments.items() if default is False}
        variants = {"": {}, **flags, **{k: v for k, v in VALUES.items() if k in arguments}}
        for name, settings in variants.items():
            yield pytest.param(kind, settings, id=f"{kind.__name__}-{name}")


CASES = list(cases())
each_case = pytest.mark.parametrize(("kind", "settings"), CASES)
#: Those that have no options besides their formulas.
FORMULAS = [x for x in CASES if not {*x.values[1]} & {*inspect.signature(Optimizer).parameters}]
SHAPES = ((3,), (2, 2), ())
#: The variables of each step: some join late, and then they take turns.
TURNS = [(0,), (0,), (0, 1), (0, 1), (1,), (2, 0), (0, 1), (2, 0), (0, 1)]


def starts() -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=shape).astype("float32") for shape in SHAPES]


def gradient(step: int, place: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng((step, place)).normal(size=SHAPES[place]).astype("float32")


class Root(gt.Module):
    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__()
        self.held = [gt.Variable(x, name=f"v{i}") for i, x in enumerate(starts())]
        self.optimizer = optimizer


def eager(root: Root, step: int, places: Sequence[int]) -> None:
    pairs = [(gt.constant(gradient(step, i)), root.held[i]) for i in places]
    root.optimizer.apply_gradients(pairs)


class Traced:
    """Steps of one trace for each set of variables."""

    def __init__(self) -> None:
        self.made: dict[Any, Any] = {}

    def __call__(self, root: Root, step: int, places: Sequence[int]) -> None:
        if places not in self.made:

            @gt.function
            def run(gradients: Any) -> None:
                pairs = zip(gradients, [root.held[i] for i in places], strict=True)
                root.optimizer.apply_gradients(pairs)

            self.made[places] = run
        self.made[places]([gt.constant(gradient(step, i)) for i in places])


def finals(root: Root) -> list[np.ndarray[Any, Any]]:
    before = [v.numpy() for v in root.held]
    root.optimizer.finalize_variable_values(root.held)
    return [*before, *[v.numpy() for v in root.held]]


def alone(kind: Any, settings: Any, turns: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Return the finals of optimizers that each train one variable."""
    roots = [Root(kind(0.1, **settings)) for _ in SHAPES]
    for step, places in enumerate(turns):
        for i in places:
            eager(roots[i], step, (i,))
    found = [finals(root) for root in roots]
    return [found[i % len(SHAPES)][i] for i in range(2 * len(SHAPES))]


def together(root: Root, turns: Any, do: Callable[..., None] = eager) -> Root:
    for step, places in turns:
        do(root, step, places)
    return root


def check(root: Root, expected: list[np.ndarray[Any, Any]]) -> None:
    for x, y in zip(finals(root), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=1e-7)


@each_case
def test_a_variable_is_trained_by_its_own_steps(kind: Any, settings: Any) -> None:
    root = together(Root(kind(0.1, **settings)), enumerate(TURNS))
    check(root, alone(kind, settings, TURNS))
    assert root.optimizer.iterations.item() == len(TURNS)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [x for x in CASES if x in FORMULAS or x.values[0] is Adam],
)
def test_traces_do_the_same(kind: Any, settings: Any) -> None:
    root = together(Root(kind(0.1, **settings)), enumerate(TURNS), Traced())
    check(root, alone(kind, settings, TURNS))
    assert root.optimizer.iterations.item() == len(TURNS)


def by_file(root: Root, path: Path) -> Root:
    gt.save(root, path / "root.h5", golden=False, functions=False)
    loaded = gt.load(path / "root.h5")
    twin = Root(loaded.optimizer)
    twin.held = loaded.held
    return twin


def by_pickle(root: Root, path: Path) -> Root:
    twin: Root = pickle.loads(pickle.dumps(root))
    return twin


def by_checkpoint(root: Root, path: Path) -> Root:
    config = root.optimizer.get_config()
    twin = Root(type(root.optimizer).from_config(config))
    gt.training.Checkpoint(root=root).save(path / "c.h5")
    # a run that went another way before
    together(twin, enumerate([(0, 1, 2), (2,), (0,)]))
    gt.training.Checkpoint(root=twin).restore(path / "c.h5")
    return twin


def by_fresh_checkpoint(root: Root, path: Path) -> Root:
    twin = Root(type(root.optimizer).from_config(root.optimizer.get_config()))
    gt.training.Checkpoint(root=root).save(path / "c.h5")
    gt.training.Checkpoint(root=twin).restore(path / "c.h5")
    return twin


@pytest.mark.parametrize("way", [by_file, by_pickle, by_checkpoint, by_fresh_checkpoint])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [x for x in CASES if x.values[0] is not Counted and x.id.endswith(("-", "_steps"))],
)
def test_it_goes_on_after_a_file(kind: Any, settings: Any, way: Any, tmp_path: Path) -> None:
    expected = alone(kind, settings, TURNS)
    turns = list(enumerate(TURNS))
    for cut in (1, 5):
        root = together(Root(kind(0.1, **settings)), turns[:cut])
        twin = way(root, tmp_path)
        check(together(twin, turns[cut:]), expected)


@pytest.mark.parametrize("kind", [Adam, Counted])
@pytest.mark.parametrize(
    "turns", [[(0,), (0,), (1,)], [(0, 1), (0,), (1, 2)], [(0, 1, 2), (2,)], [(0,), (0, 1)]]
)
def test_a_trace_may_have_several_steps(kind: Any, turns: list[Any]) -> None:
    root = Root(kind(0.1))

    @gt.function
    def run(gradients: Any) -> None:
        for places, some in zip(turns, gradients, strict=True):
            root.optimizer.apply_gradients(list(zip(some, [root.held[i] for i in places])))

    for start in range(0, 3 * len(turns), len(turns)):
        run([[gt.constant(gradient(start + s, i)) for i in p] for s, p in enumerate(turns)])
    check(root, alone(kind, {}, turns * 3))


def test_variables_that_were_built_and_left_out_start_late() -> None:
    for do in (eager, Traced()):
        root = Root(Adam(0.1, use_ema=True))
        root.optimizer.build(root.held)
        check(together(root, enumerate(TURNS), do), alone(Adam, {"use_ema": True}, TURNS))


def test_what_was_never_updated_has_no_average() -> None:
    root = Root(SGD(0.1, use_ema=True, gradient_accumulation_steps=2))
    root.optimizer.build(root.held)
    together(root, [(0, (0, 1)), (1, (0,))])
    check(root, alone(SGD, {"use_ema": True, "gradient_accumulation_steps": 2}, [(0, 1), (0,)]))
    np.testing.assert_array_equal(root.held[1].numpy(), starts()[1])


def test_loss_scaling_counts_the_steps_that_it_does() -> None:
    for do in (eager, Traced()):
        root = Root(gt.mixed_precision.LossScaleOptimizer(Adam(0.1), initial_scale=1.0))
        turns: list[Any] = []
        for step, places in enumerate(TURNS):
            do(root, step, places)
            turns.append(places)
            if step == 3:  # skipped
                infinite = gt.constant(np.full((2, 2), np.inf, "float32"))
                root.optimizer.apply_gradients([(infinite, root.held[1])])
                root.optimizer.dynamic_scale.assign(1.0)
        check(root, alone(Adam, {}, turns))


def test_a_norm_over_all_gradients_is_of_those_in_the_step() -> None:
    for options in ({}, {"gradient_accumulation_steps": 2}):
        found = []
        for do in (eager, Traced()):
            root = Root(SGD(1.0, global_clipnorm=0.1, **options))
            together(root, enumerate([(0,), (0, 1), (0, 1)]), do)
            found.append(finals(root))
        for x, y in zip(*found, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5)
        if not options:
            moved = [x - y for x, y in zip(finals(root), starts(), strict=False)]
            whole = [np.linalg.norm(gradient(1, i)) for i in (0, 1)]
            share = 0.1 / np.hypot(*whole)
            again = 0.1 / np.hypot(*[np.linalg.norm(gradient(2, i)) for i in (0, 1)])
            expected = -share * gradient(1, 1) - again * gradient(2, 1)
            np.testing.assert_allclose(moved[1], expected, rtol=1e-4)


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("options", [{}, {"use_ema": True, "ema_momentum": 0.8}])
def test_fit_after_unfreezing_starts_the_layer_anew(compile: bool, options: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 3)).astype("float32"), rng.normal(size=(8, 1)).astype("float32")
    models = [gt.layers.Sequential([gt.layers.Dense(4), gt.layers.Dense(1)]) for _ in range(2)]
    for model in models:
        model(x)
        for variable, value in zip(models[0].variables, model.variables, strict=True):
            value.assign(variable)
    fitted, byhand = models
    optimizer, own = Adam(0.05, **options), [Adam(0.05, **options) for _ in range(2)]
    for trained in ((1,), (0, 1), (0,)):
        for i, layer in enumerate(fitted.layers):
            layer.trainable = i in trained
        training.fit(
            fitted, (x, y), loss="mse", optimizer=optimizer, epochs=3, compile=compile, verbose=0
        )
        for _ in range(3):
            with gt.GradientTape(persistent=True) as tape:
                loss = gt.mean((byhand(x) - y) ** 2)
            for i in trained:
                held = byhand.layers[i].trainable_variables
                own[i].apply_gradients(zip(tape.gradient(loss, held), held, strict=True))
        for i in trained:
            own[i].finalize_variable_values(byhand.layers[i].variables)
    for one, two in zip(fitted.variables, byhand.variables, strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=2e-4, atol=1e-6)


class Branches(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = gt.layers.Dense(1), gt.layers.Dense(1)

    def __call__(self, x: Any) -> Any:
        return {"one": self.one(x), "two": self.two(x)}


@pytest.mark.parametrize("compile", [False, True])
def test_an_output_without_a_loss_keeps_its_weights(compile: bool) -> None:
    x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
    model, optimizer = Branches(), Adam(0.1, use_ema=True)
    model(x)
    before = [v.numpy() for v in model.two.variables]
    for loss, counts in (({"one": "mse", "two": None}, [3, 3, 0, 0]), ("mse", [6, 6, 3, 3])):
        training.fit(
            model,
            (x, {"one": y, "two": y}),
            loss=loss,
            optimizer=optimizer,
            epochs=3,
            compile=compile,
            verbose=0,
        )
        assert [counter.item() for counter in optimizer.step_counts] == counts
        same = [np.array_equal(a, v.numpy()) for a, v in zip(before, model.two.variables)]
        assert all(same) is (counts[-1] == 0)


@pytest.mark.parametrize("compile", [False, True])
def test_a_callback_may_train_other_variables(compile: bool) -> None:
    x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
    model, extra = gt.layers.Dense(1, kernel_initializer="ones"), gt.Variable(1.0)
    optimizer, alone = Adam(0.1), Adam(0.1)

    class Beside(training.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch % 2:
                optimizer.apply_gradients([(gt.constant(1.0), extra)])

    fit = {"loss": "mse", "epochs": 6, "compile": compile, "verbose": 0}
    training.fit(model, (x, y), optimizer=optimizer, callbacks=[Beside()], **fit)
    assert [counter.item() for counter in optimizer.step_counts] == [6, 6, 3]
    np.testing.assert_allclose(extra.item(), 0.7, rtol=1e-5)
    twin = gt.layers.Dense(1, kernel_initializer="ones")
    training.fit(twin, (x, y), optimizer=alone, **fit)
    np.testing.assert_allclose(model.kernel.numpy(), twin.kernel.numpy(), rtol=1e-6)


#: PyTorch's optimizers with the same formula, by their settings here and there.
TORCH: list[tuple[Any, dict[str, Any], str, dict[str, Any]]] = [
    (SGD, {"momentum": 0.9}, "SGD", {"momentum": 0.9}),
    (SGD, {"momentum": 0.9, "nesterov": True}, "SGD", {"momentum": 0.9, "nesterov": True}),
    (Adam, {"epsilon": 0.0}, "Adam", {"eps": 0.0}),
    (Adam, {"epsilon": 0.0, "amsgrad": True}, "Adam", {"eps": 0.0, "amsgrad": True}),
    (training.AdamW, {"epsilon": 0.0}, "AdamW", {"eps": 0.0, "weight_decay": 0.004}),
    (training.Adamax, {"epsilon": 0.0}, "Adamax", {"eps": 0.0}),
    (training.RMSprop, {"epsilon": 0.0}, "RMSprop", {"eps": 0.0, "alpha": 0.9}),
    (training.Adagrad, {"epsilon": 0.0}, "Adagrad", {"initial_accumulator_value": 0.1, "eps": 0.0}),
    (training.Adadelta, {}, "Adadelta", {"rho": 0.95, "eps": 1e-7}),
]


@pytest.mark.parametrize(("kind", "settings", "name", "theirs"), TORCH)
def test_late_variables_are_as_pytorchs(kind: Any, settings: Any, name: str, theirs: Any) -> None:
    torch = pytest.importorskip("torch")
    root = Root(kind(0.1, **settings))
    held = [torch.nn.Parameter(torch.tensor(x)) for x in starts()]
    optimizer = getattr(torch.optim, name)(held[:1], lr=0.1, **theirs)
    known = 1
    for step, places in enumerate(TURNS):
        for i in range(known, max(places) + 1):
            optimizer.add_param_group({"params": [held[i]]})
            known = i + 1
        for i, parameter in enumerate(held):
            parameter.grad = torch.tensor(gradient(step, i)) if i in places else None
        eager(root, step, places)
        optimizer.step()
    for mine, other in zip(root.held, held, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "settings"), FORMULAS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.filterwarnings("ignore:.*is float16")
def test_constant_gradients_keep_weights_finite(kind: Any, settings: Any, dtype: str) -> None:
    """Neither rounding, nor zeros without an epsilon, nor one that is 0 in float16 give NaN."""
    arguments = inspect.signature(kind).parameters
    for epsilon in (None, 0.0, 1e-8):
        if epsilon is not None and "epsilon" not in arguments:
            continue
        optimizer = kind(0.01, **settings, **({} if epsilon is None else {"epsilon": epsilon}))
        gradient = np.array([0.0, 1e-30, 1e-20, 1e-6, 1.1951073, -0.3, 10.0], dtype)
        w = gt.Variable(np.ones_like(gradient))
        for _ in range(60):
            optimizer.apply_gradients([(gt.constant(gradient), w)])
        assert np.isfinite(w.numpy()).all()
