"""What a loaded model computes before a part is what the live model passes to the part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers

L = gt.layers
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(6, 5)).astype("float32")
IMAGES = RNG.normal(size=(6, 5, 5, 2)).astype("float32")
STEPS = RNG.normal(size=(6, 4, 3)).astype("float32")


@gt.custom_gradient
def to_eighths(x: Any) -> Any:
    return gt.round(x * 8.0) / 8.0, lambda upstream: upstream


class Block(gt.Module):
    """A class of its own as the part."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = L.Dense(4, activation="tanh"), L.LayerNormalization()
        self.bias = gt.Variable(np.zeros(4, "float32"))

    def __call__(self, x: Any) -> Any:
        return self.norm(self.inner(x) + self.bias) * 2.0


class Net(gt.Module):
    """Steps before a part, and steps after it."""

    def __init__(self, before: Any, part: Any, after: Any) -> None:
        super().__init__()
        self.body, self.part, self._after = before, part, after
        if isinstance(after, gt.Module):
            self.last = after
        self.seen: Any = None

    def __call__(self, x: Any, training: bool = False) -> Any:
        told = {"training": training}
        for step in self.body:
            x = step(x, **told) if isinstance(step, (L.BatchNorm, L.Dropout)) else step(x)
        SEEN.append(x)
        return self._after(self.part(x), x)


SEEN: list[Any] = []


def result(y: Any, x: Any) -> Any:
    return y


Case = tuple[np.ndarray[Any, Any], Callable[[], list[Any]], Callable[[], Any], Any]
CASES: dict[str, Case] = {
    "dense": (ROWS, lambda: [L.Dense(4, activation="relu")], lambda: L.Dense(3), result),
    "softmax after": (
        ROWS,
        lambda: [L.Dense(4), L.BatchNorm(), L.Dropout(0.5)],
        lambda: L.Dense(3),
        lambda y, x: gt.nn.softmax(y),
    ),
    "skip connection": (
        ROWS,
        lambda: [L.Dense(4), to_eighths],
        lambda: L.Dense(4),
        lambda y, x: y + x,
    ),
    "custom gradient": (ROWS, lambda: [L.Dense(4), to_eighths], lambda: L.Dense(3), result),
    "convolution": (
        IMAGES,
        lambda: [L.Conv2D(3, 3, padding="same", strides=2), L.BatchNorm()],
        lambda: L.Conv2D(2, 2, padding="same", strides=2),
        result,
    ),
    "flattened": (
        IMAGES,
        lambda: [L.Conv2D(3, 3, activation="relu"), L.MaxPooling2D(), L.Flatten()],
        lambda: L.Dense(2),
        result,
    ),
    "normalisation": (ROWS, lambda: [L.Dense(4)], lambda: L.BatchNorm(), result),
    "layer normalisation": (
        ROWS, lambda: [L.Dense(4)], lambda: L.LayerNormalization(), lambda y, x: y * x
    ),
    "recurrent": (STEPS, lambda: [L.Dense(4)], lambda: L.LSTM(3), result),
    "after a recurrent layer": (STEPS, lambda: [L.GRU(4)], lambda: L.Dense(3), result),
    "own class": (ROWS, lambda: [L.Dense(5)], Block, lambda y, x: gt.sum(y, axis=1)),
    "sequential": (
        ROWS,
        lambda: [L.Dense(4)],
        lambda: L.Sequential([L.Dense(4, activation="relu"), L.Dropout(0.5), L.Dense(2)]),
        result,
    ),
    "first": (ROWS, list, lambda: L.Dense(3), result),
    "regularised": (
        ROWS,
        lambda: [L.Dense(4, kernel_regularizer="l2", activity_regularizer="l1")],
        lambda: L.Dense(3, activity_regularizer="l2"),
        result,
    ),
    "einsum": (
        STEPS,
        lambda: [L.LayerNormalization()],
        lambda: L.EinsumDense("abc,cd->abd", output_shape=(None, 2), bias_axes="d"),
        result,
    ),
}  # fmt: skip


def saved(case: str, folder: Path) -> tuple[Net, np.ndarray[Any, Any], Path]:
    gt.random.set_seed(1)
    given, before, part, after = CASES[case]
    net = Net(before(), part(), after)
    net(given, training=True)
    net(given)
    for variable in net.trainable_variables:  # biases too
        variable.assign_add(0.1 * RNG.normal(size=variable.shape).astype("float32"))
    gt.save(net, folder / "net.h5")
    return net, given, folder / "net.h5"


def entering(net: Net, given: Any, training: bool) -> np.ndarray[Any, Any]:
    """Return what the live model passes to its part."""
    SEEN.clear()
    net(given, training=training)
    return gt.constant(SEEN[-1]).numpy()


@pytest.mark.parametrize("case", CASES)
def test_it_is_what_enters_the_part(case: str, tmp_path: Path) -> None:
    net, given, path = saved(case, tmp_path)
    loaded = gt.load(path)
    body = gt.saving.features(loaded, before="part")
    compiled = gt.function(lambda x: body(x))
    for rows in (1, 4, 6):
        want = entering(net, given[:rows], False)
        np.testing.assert_allclose(body(given[:rows]).numpy(), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(compiled(given[:rows]).numpy(), want, rtol=1e-5, atol=1e-6)
    gt.random.set_seed(3)
    whole = loaded(given, training=True)
    fresh = gt.load(path)
    again = gt.saving.features(fresh, before=fresh.part)
    gt.random.set_seed(3)
    entered = again(given, training=True)
    if CASES[case][3] is result and case != "sequential":  # whose dropout draws
        told = {"training": True} if case == "normalisation" else {}
        want = fresh.part(entered, **told).numpy()
        np.testing.assert_allclose(whole.numpy(), want, rtol=1e-5, atol=1e-6)
    statistics = [v for v in again.variables if "moving" in v.name]
    theirs = {p: v for p, v in loaded.named_variables.items() if not p.startswith("part")}
    for path_, variable in again.named_variables.items():
        np.testing.assert_array_equal(variable.numpy(), theirs[path_].numpy())
    assert len(statistics) == sum("moving" in name for name in theirs)
    assert whole.shape[0] == entered.shape[0]


@pytest.mark.parametrize("case", CASES)
def test_another_part_behind_it_trains_saves_and_verifies(case: str, tmp_path: Path) -> None:
    _, given, path = saved(case, tmp_path)
    loaded = gt.load(path)
    body = gt.saving.features(loaded, before="part")
    assert not [name for name in body.named_variables if name.startswith("part")]
    model = L.Sequential([body, L.Flatten(), L.Dense(2)])
    labels = np.arange(len(given)) % 2
    model(given)
    before = {v: v.numpy().copy() for v in loaded.part.variables}
    gt.training.fit(model, (given, labels), epochs=2, verbose=False, seed=0)
    assert all((v.numpy() == kept).all() for v, kept in before.items() if v.trainable)
    gt.save(model, tmp_path / "tuned.h5")
    assert gt.saving.verify(tmp_path / "tuned.h5").ok
    again = gt.load(tmp_path / "tuned.h5")
    np.testing.assert_array_equal(again(given).numpy(), model(given).numpy())
    if body.trainable_variables:
        with gt.GradientTape() as tape:
            loss = gt.sum(model(given))
        with gt.GradientTape() as other:
            same = gt.sum(again(given))
        pairs = zip(
            tape.gradient(loss, model.trainable_variables),
            other.gradient(same, again.trainable_variables),
            strict=True,
        )
        assert all((a.numpy() == b.numpy()).all() for a, b in pairs)


def test_losses_of_the_part_go_and_those_before_it_stay(tmp_path: Path) -> None:
    _, given, path = saved("regularised", tmp_path)
    loaded = gt.load(path)
    body = gt.saving.features(loaded, before="part")
    body(given)
    (kept,) = body.losses[:1]
    loaded(given)
    assert len(loaded.losses) > len(body.losses)
    assert kept.item() in [x.item() for x in loaded.losses]


def test_parts_of_graphs_and_of_sequentials_inside(tmp_path: Path) -> None:
    given = gt.Input((5,))
    hidden = L.Dense(4, activation="relu", name="hidden")(given)
    joined = L.Concatenate()([hidden, given])
    model = gt.Model(given, L.Dense(3, name="out")(joined))
    gt.save(model, tmp_path / "graph.h5")
    loaded = gt.load(tmp_path / "graph.h5")
    want = gt.Model(given, joined)(ROWS).numpy()
    for before in ("out", "layers/2", loaded.layers[2]):
        np.testing.assert_array_equal(gt.saving.features(loaded, before)(ROWS).numpy(), want)

    class Outer(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = L.Sequential([L.Dense(4), L.Dense(3)])

        def __call__(self, x: Any) -> Any:
            return gt.exp(self.body(x))

    outer = Outer()
    outer(ROWS)
    gt.save(outer, tmp_path / "outer.h5")
    body = gt.saving.features(gt.load(tmp_path / "outer.h5"), before="body/layers/1")
    np.testing.assert_array_equal(body(ROWS).numpy(), outer.body.layers[0](ROWS).numpy())
    assert list(body.named_variables) == ["body/layers/0/kernel", "body/layers/0/bias"]


def test_freezing_is_shared_with_the_loaded_model(tmp_path: Path) -> None:
    _, _, path = saved("dense", tmp_path)
    loaded = gt.load(path)
    body = gt.saving.features(loaded, before="part")
    body.trainable = False
    assert loaded.body[0].trainable is False
    assert [v.trainable for v in loaded.part.variables] == [True, True]
    gt.save(L.Sequential([body, L.Dense(2)]), tmp_path / "x.h5", functions=False)
    frozen = gt.load(path)
    frozen.trainable = False
    assert gt.saving.features(frozen, before="part").trainable is False


class Shared(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part, self.unused, self.drop = L.Dense(5), L.Dense(2), L.Dropout(0.5)
        self.attention = L.MultiHeadAttention(2, 4)

    def __call__(self, x: Any) -> Any:
        y = self.drop(self.part(self.part(x)))
        steps = gt.reshape(y, (-1, 1, 5))
        return self.attention(steps, 2.0 * steps)


class Tied(gt.Module):
    """A model that uses a weight of a layer otherwise too."""

    def __init__(self) -> None:
        super().__init__()
        self.part = L.Dense(5, use_bias=False)

    def __call__(self, x: Any) -> Any:
        return gt.matmul(self.part(x), gt.transpose(self.part.kernel))


def test_what_is_not_clear_is_refused(tmp_path: Path) -> None:
    model = Shared()
    model(ROWS)
    model.unused(ROWS)
    gt.save(model, tmp_path / "shared.h5")
    loaded = gt.load(tmp_path / "shared.h5")
    for before, told in {
        "part": "calls 'part' several times",
        "unused": "does not use weights of 'unused'",
        "drop": "name a part with weights",
        "attention": "the call of 'attention' is not found",
        "nowhere": "no part 'nowhere'; it has: attention,",
    }.items():
        with pytest.raises(ValueError, match=told):
            gt.saving.features(loaded, before)
    tied = Tied()
    tied(ROWS)
    gt.save(tied, tmp_path / "tied.h5")
    with pytest.raises(ValueError, match="or uses its weights otherwise"):
        gt.saving.features(gt.load(tmp_path / "tied.h5"), "part")
    with pytest.raises(TypeError, match="is not from a file, so set the part itself"):
        gt.saving.features(model, "part")
    with pytest.raises(TypeError, match=r"Sequential\(m\.layers\[:-1\]\)"):
        gt.saving.features(L.Sequential([L.Dense(2)]), "layers/0")
    given = gt.Input((5,))
    graph = gt.Model(given, L.Dense(2)(L.Dense(3)(given)))
    with pytest.raises(TypeError, match=r"gradtape\.Model\(m\.input, m\.layers\[-1\]\.input\)"):
        gt.saving.features(graph, "layers/1")
    assert gt.Model(graph.input, graph.layers[-1].input)(ROWS).shape == (6, 3)
    for name in ("input", "output", "get_layer", "pop"):
        with pytest.raises(AttributeError, match=r"saving\.features\(model, before=\.\.\.\)"):
            getattr(loaded, name)
    never = gt.Module("never")
    never.layer = L.Dense(2)
    never.layer(ROWS)
    gt.save(never, tmp_path / "never.h5")
    with pytest.raises(TypeError, match="has no call"):
        gt.saving.features(gt.load(tmp_path / "never.h5"), "layer")


def test_what_comes_after_the_part_goes_with_variables_that_no_call_used(tmp_path: Path) -> None:
    class Step(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.drop = layers.Dense(4), layers.Dropout(0.5)

        def __call__(self, x: Any, training: bool = False) -> Any:
            return self.drop(self.dense(x), training=training)

    class Steps(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = [Step(), Step(), Step()]

        def __call__(self, x: Any, training: bool = False) -> Any:
            for step in self.steps:
                x = step(x, training=training)
            return x

    model, x = Steps(), gt.ones((8, 3))
    model(x)
    gt.save(model, tmp_path / "steps.h5")
    body = gt.saving.features(gt.load(tmp_path / "steps.h5"), before="steps/1")
    assert [path for path, _ in body.named_leaves() if path.endswith("dense")] == ["steps/0/dense"]
    tuned = layers.Sequential([body, layers.Dense(2)])
    kernel = body.steps[0].dense.kernel
    old = kernel.numpy().copy()
    gt.training.fit(tuned, (x, gt.ones((8, 2))), loss="mse", epochs=2, verbose=0)
    assert np.isfinite(kernel.numpy()).all()
    assert not np.array_equal(kernel.numpy(), old)


class Places(gt.Module):
    """The result depends on the sizes of the input alone, as that of learned positions does."""

    def __init__(self) -> None:
        super().__init__()
        self.table = gt.Variable(RNG.normal(size=(9, 3)).astype("float32"))

    def __call__(self, x: Any) -> Any:
        return gt.broadcast_to(self.table[: x.shape[1]], x.shape)


class Placed(gt.Module):
    def __init__(self, part: gt.Module) -> None:
        super().__init__()
        self.hidden, self.part, self.out = L.Dense(3), part, L.Dense(2)

    def __call__(self, x: Any) -> Any:
        y = self.hidden(x)
        return self.out(y + self.part(y))


class Fixed(Places):
    def __call__(self, x: Any) -> Any:
        return self.table[:1] * 2.0


@pytest.mark.parametrize("part", [Places, Fixed])
def test_a_part_that_could_be_called_with_any_value_is_refused(
    part: Callable[[], gt.Module], tmp_path: Path
) -> None:
    model = Placed(part())
    model(STEPS)
    gt.save(model, tmp_path / "placed.h5")
    loaded = gt.load(tmp_path / "placed.h5")
    with pytest.raises(ValueError, match="'part' depends on its input's shape only"):
        gt.saving.features(loaded, before="part")
    assert gt.saving.features(loaded, before="out")(STEPS).shape == (6, 4, 3)


class Flattening(gt.Module):
    """Changes the shape of its input if that has more than two axes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = gt.Variable(RNG.normal(size=(3, 2)).astype("float32"))

    def __call__(self, x: Any) -> Any:
        x = gt.reshape(x, (-1, 3)) if len(x.shape) > 2 else x
        return x @ self.weight


def test_a_part_that_may_have_changed_the_shape_itself_is_refused(tmp_path: Path) -> None:
    class Model(gt.Module):
        def __init__(self, outside: bool) -> None:
            super().__init__()
            self.hidden, self.part, self.outside = L.Dense(3), Flattening(), outside

        def __call__(self, x: Any) -> Any:
            y = self.hidden(x)
            return self.part(gt.reshape(y, (-1, 3)) if self.outside else y)

    for outside in (True, False):  # their graphs are the same
        model = Model(outside)
        model.part(STEPS)
        model.part(ROWS[:, :3])
        model(STEPS)
        gt.save(model, tmp_path / "model.h5")
        loaded = gt.load(tmp_path / "model.h5")
        with pytest.raises(ValueError, match="it is not clear what comes before 'part'"):
            gt.saving.features(loaded, before="part")
        assert gt.saving.features(loaded, before="hidden")(STEPS).shape == STEPS.shape


class Looped(gt.Module):
    """Its weights are used in a graph inside a node."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.weight, self.factor = gt.Variable(np.ones(3, "float32")), factor

    def __call__(self, x: Any) -> Any:
        def turn(i: Any, y: Any) -> Any:
            return i + 1, y * self.weight * self.factor

        return gt.while_loop(lambda i, y: i < 3, turn, (gt.constant(0), x))[1]


def test_graphs_inside_nodes_are_compared_too(tmp_path: Path) -> None:
    model = Placed(Looped(0.5))
    model(STEPS)
    gt.save(model, tmp_path / "loop.h5")
    body = gt.saving.features(gt.load(tmp_path / "loop.h5"), before="part")
    np.testing.assert_allclose(body(STEPS).numpy(), model.hidden(STEPS).numpy(), rtol=1e-5)

    class Other(Placed):
        def __call__(self, x: Any) -> Any:
            other = Looped(0.25)
            other.weight = self.part.weight  # the same variable in another loop
            return self.out(other(self.hidden(x)))

    other = Other(Looped(0.5))
    other.part(STEPS)
    other(STEPS)
    gt.save(other, tmp_path / "other.h5")
    with pytest.raises(ValueError, match="the call of 'part' is not found"):
        gt.saving.features(gt.load(tmp_path / "other.h5"), before="part")


def test_modules_and_containers_may_hold_each_other(tmp_path: Path) -> None:
    model = Placed(L.Dense(3))
    model.around = [model, {"part": model.part, "hidden": [model.hidden]}]
    model.holder = gt.Module("holder")
    model.holder.above, model.holder.below = model, [model.part, model.hidden]
    model(STEPS)
    gt.save(model, tmp_path / "around.h5")
    want = model.hidden(STEPS).numpy()
    for path in ("part", "around/1/part", "holder/below/0"):
        loaded = gt.load(tmp_path / "around.h5")
        body = gt.saving.features(loaded, before=path)
        np.testing.assert_allclose(body(STEPS).numpy(), want, rtol=1e-5)
        assert body.around[0] is body
        assert body.holder.above is body
        assert "part" not in body.around[1]
        assert body.holder.below == [loaded.hidden]
    gt.save(body, tmp_path / "body.h5")
    np.testing.assert_allclose(gt.load(tmp_path / "body.h5")(STEPS).numpy(), want, rtol=1e-5)


class Alike(gt.Module):
    """Holds many nodes that are alike, so that a call may be found in many ways."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.weight, self.turns = gt.Variable(np.ones(3, "float32")), turns

    def __call__(self, x: Any) -> Any:
        y = -x
        for _ in range(self.turns):
            y = y + -x
        return y * self.weight


def test_the_search_for_a_call_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Placed(Alike(1100))  # deeper than Python's stack
    model(STEPS)
    gt.save(model, tmp_path / "alike.h5")
    loaded = gt.load(tmp_path / "alike.h5")
    with monkeypatch.context() as patch:
        patch.setattr("gradtape.saving.reading.matching._MOST", 50_000)
        with pytest.raises(ValueError, match="too many places where 'part' might be called"):
            gt.saving.features(loaded, before="part")
    model = Placed(Alike(30))
    model(STEPS)
    gt.save(model, tmp_path / "alike.h5")
    body = gt.saving.features(gt.load(tmp_path / "alike.h5"), before="part")
    np.testing.assert_allclose(body(STEPS).numpy(), model.hidden(STEPS).numpy(), rtol=1e-5)


def test_a_loaded_part_is_a_layer_of_a_model_of_inputs_and_outputs(tmp_path: Path) -> None:
    pixels = gt.Input((4,))
    hidden = gt.layers.BatchNorm()(gt.layers.Dense(3)(pixels))
    first = gt.Model(pixels, gt.layers.Dense(2, name="out")(hidden))
    gt.save(first, tmp_path / "first.h5")
    body = gt.saving.features(gt.load(tmp_path / "first.h5"), before="out")
    body.trainable = False
    kept = [v.numpy().copy() for v in body.variables]

    x = np.random.default_rng(0).normal(size=(40, 4)).astype("float32")
    place = gt.Input((4,))
    model = gt.Model(place, gt.layers.Dense(1)(body(place, training=False)))
    gt.training.fit(model, (x, x[:, :1]), loss="mse", verbose=0)
    assert len(model.trainable_variables) == 2
    for variable, old in zip(body.variables, kept, strict=True):
        np.testing.assert_array_equal(variable, old)
    expected = model.layers[1](body(x, training=False))
    np.testing.assert_array_equal(model(x, training=True), expected)

    gt.save(model, tmp_path / "second.h5")
    np.testing.assert_array_equal(gt.load(tmp_path / "second.h5")(x), model(x))
