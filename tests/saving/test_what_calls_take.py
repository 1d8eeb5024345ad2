"""A loaded module takes what the live one took, computes as it does, and refuses what would not."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import assert_same_bits, run_isolated
from saved_modules import reloaded

import gradtape as gt
from gradtape.saving import SaveError

pytestmark = pytest.mark.usefixtures("forks")


class Frame:
    """What a table of another library is to ops: something with an array in it."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.array, dtype)


class Cubes(gt.Module):
    """Nothing in it depends on the dtype of its input; it has a custom gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable(np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3))
        self.rate = 0.1

    def __call__(self, x: Any) -> Any:
        @gt.custom_gradient
        def cube(x: Any) -> Any:
            return x * x * x, lambda g: 10.0 * g * x * x

        return cube(gt.matmul(x, self.w)) * self.rate + gt.sum(x) / 2

    @gt.function
    def halves(self, x: Any, by: float = 2.0) -> Any:
        return gt.sin(x) / by


def inputs_of(dtype: str, batch: int = 3) -> Any:
    return np.linspace(0, 3, 2 * batch).reshape(batch, 2).astype(dtype)


@pytest.fixture
def live() -> Cubes:
    module = Cubes()
    module(inputs_of("float32"))
    module.halves(inputs_of("float32"))
    return module


DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")


@pytest.mark.parametrize("name", ["__call__", "halves"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_any_dtype_give_what_the_live_module_gives(
    dtype: str, name: str, live: Cubes, tmp_path: Path
) -> None:
    loaded = reloaded(reloaded(live, tmp_path), tmp_path)
    for batch in (1, 2, 3, 7) if name == "__call__" else (3,):
        for wrap in (np.asarray, gt.constant, Frame):
            x = wrap(inputs_of(dtype, batch))
            assert_same_bits([getattr(loaded, name)(x)], [getattr(live, name)(_tensor(x, name))])


def _tensor(x: Any, name: str) -> Any:
    return np.asarray(x) if isinstance(x, Frame) and name == "halves" else x


def test_gradients_of_another_dtype_are_kept_to_third_order(live: Cubes, tmp_path: Path) -> None:
    loaded = reloaded(live, tmp_path)

    def orders(module: Any, x: Any) -> list[Any]:
        found: list[Any] = []

        def descend(order: int) -> Any:
            with gt.GradientTape() as tape:
                tape.watch(x)
                value = gt.sum(module(x)) if order == 0 else descend(order - 1)
            first, second = tape.gradient(value, [x, module.w])
            found.extend([first, second])
            return gt.sum(gt.sin(first)) + gt.sum(second * second)

        descend(2)
        return found

    for batch in (1, 2, 3, 7):
        x = gt.constant(inputs_of("float64", batch) - 1)
        assert_same_bits(orders(loaded, x), orders(live, x))


def test_other_dtypes_are_taken_in_a_fresh_process_and_inside_functions(
    live: Cubes, tmp_path: Path
) -> None:
    gt.save(live, tmp_path / "m.h5")
    printed = run_isolated(
        "m = gt.load(sys.argv[1])\n"
        "x = np.linspace(0, 3, 6).reshape(3, 2)\n"
        "inside = gt.function(lambda x: m(x) * 1.0)\n"
        "print(m(x).numpy().tobytes().hex(), inside(x).numpy().tobytes().hex())\n",
        tmp_path / "m.h5",
    )
    expected = live(inputs_of("float64")).numpy().tobytes().hex()
    assert printed.split() == [expected, expected]


def test_numbers_and_lists_are_weak_as_in_the_live_module(live: Cubes, tmp_path: Path) -> None:
    loaded = reloaded(live, tmp_path)
    for x in ([[1.0, 2.5]], ((1.0, 2.5),), [[1, 2.5]], [np.float32([1, 2])]):
        assert_same_bits([loaded(x)], [live(x)])
        assert loaded(x=x).dtype == "float32"


def test_python_that_asks_for_the_dtype_is_refused_for_others(tmp_path: Path) -> None:
    class Asking(gt.Module):
        def __call__(self, x: Any) -> Any:
            return x * 2.0 if x.dtype == "float32" else x * 3.0

    module = Asking()
    module(inputs_of("float32"))
    loaded = reloaded(module, tmp_path)
    with pytest.raises(
        TypeError, match=r"must be float32\[\?, 2\], got dtype float64; cast it with"
    ):
        loaded(inputs_of("float64"))


def test_a_declared_signature_takes_its_dtype_alone_as_live(tmp_path: Path) -> None:
    class Declared(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None])])
        def f(self, x: Any) -> Any:
            return x * 2.0

    for module in (Declared(), reloaded(Declared(), tmp_path)):
        with pytest.raises(TypeError, match="got dtype float64"):
            module.f(np.ones(2))


def test_floats_are_never_cut_to_declared_integers(tmp_path: Path) -> None:
    class Indexed(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([], "int64"), gt.TensorSpec([None], "int32")])
        def f(self, n: Any, which: Any) -> Any:
            return n + which

    for module in (Indexed(), reloaded(Indexed(), tmp_path)):
        assert module.f(1, [2, 3]).tolist() == [3, 4]
        assert module.f(1, []).tolist() == []
        for given in ((1.5, [2]), (1, [2.5])):
            with pytest.raises(
                TypeError, match=r"must be int.*, got Python numbers of kind float32"
            ):
                module.f(*given)


@pytest.mark.parametrize("given", [Frame(np.ones((2, 2))), np.float64(2.0), np.float32(0.5)])
def test_a_module_that_met_tables_or_numpys_scalars_takes_others(
    given: Any, tmp_path: Path
) -> None:
    class Twice(gt.Module):
        def __call__(self, x: Any) -> Any:
            return gt.multiply(x, 2.0)

    module = Twice()
    module(given)
    loaded = reloaded(module, tmp_path)
    array = np.asarray(given) + 1
    assert_same_bits([loaded(array)], [module(array)])


@pytest.mark.parametrize("given", [[[1.0, 2.0]], [[1, 2]], np.ones((1, 2)), ((1.0, 2),)])
def test_a_layer_that_met_lists_takes_others(given: Any, tmp_path: Path) -> None:
    class Scale(gt.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.factor = self.add_weight((input_shape[-1],), "ones", "factor")

        def call(self, x: Any) -> Any:
            return x * self.factor

    layer = Scale(dtype="float32")
    layer(given)
    loaded = pickle.loads(pickle.dumps(reloaded(layer, tmp_path)))
    for x in ([[3.0, 4.0], [5.0, 6.0]], np.float32([[1, 2]]), np.ones((2, 2)), [[1, 2]]):
        assert_same_bits([loaded(x)], [layer(x)])


# -- what graphs have absorbed ---------------------------------------------------------------------


class Absorbing(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rate, self.label, self.best = 0.1, "a", [0.5]
        self.table = np.float32([1.0, 2.0])
        self.w = gt.Variable(2.0)
        self.inner = gt.Module(name="inner")
        self.inner.power, self.inner.unused = 2, 3
        self.spare = gt.Variable(1.0)

    def __call__(self, x: Any) -> Any:
        return x**self.inner.power * self.rate * self.w + self.table[0]


def test_what_a_graph_has_read_cannot_be_set(tmp_path: Path) -> None:
    module = Absorbing()
    module(np.ones(2, "float32"))
    loaded = reloaded(reloaded(module, tmp_path), tmp_path)
    for owner, name, advice in (
        (loaded, "rate", "has its value.*Make it a gradtape.Variable before saving"),
        (loaded, "table", "has its value"),
        (loaded, "w", r"Change its value: \.w\.assign"),
        (loaded.inner, "power", "has its value"),
    ):
        with pytest.raises(AttributeError, match=f"{name!r} cannot be set.*{advice}"):
            setattr(owner, name, 5)
        with pytest.raises(AttributeError, match=f"{name!r} cannot be set"):
            delattr(owner, name)
    with pytest.raises(ValueError, match="read-only"):
        loaded.table[0] = 3.0
    with pytest.raises(AttributeError, match="'inner' cannot be set"):
        loaded.inner = gt.Module(name="other")
    loaded.label, loaded.inner.unused, loaded.new = "b", 4, 1
    loaded.best.append(0.25)
    loaded.spare = gt.Variable(3.0)
    loaded.w.assign(3.0)
    assert loaded(np.ones(1, "float32")).item() == pytest.approx(1.3)
    again = reloaded(loaded, tmp_path)
    assert (again.label, again.best, again.inner.unused) == ("b", [0.5, 0.25], 4)
    twin = copy.copy(again)
    with pytest.raises(AttributeError, match="'rate' cannot be set"):
        twin.rate = 1.0


@pytest.mark.parametrize("settings", [{"golden": False}, {}], ids=["not compared", "compared"])
def test_a_function_traced_before_saving_absorbs_too(settings: Any, tmp_path: Path) -> None:
    class Traced(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rate, self.label = 0.5, "a"

        @gt.function(input_signature=[gt.TensorSpec([None])])
        def f(self, x: Any) -> Any:
            return x * helper(self)

    def helper(module: Any) -> Any:
        return getattr(module, "ra" + "te")

    module = Traced()
    module.f(np.ones(2, "float32"))
    loaded = reloaded(module, tmp_path, **settings)
    with pytest.raises(AttributeError, match="'rate' cannot be set"):
        loaded.rate = 1.0
    if settings:  # nobody has seen what it reads, so nothing can be set
        with pytest.raises(AttributeError, match="'label' cannot be set"):
            loaded.label = "b"
    else:
        loaded.label = "b"


def test_what_no_function_can_have_read_may_be_set(tmp_path: Path) -> None:
    root = gt.Module(name="run")
    root.epoch, root.model = 3, Absorbing()
    root.model(np.ones(2, "float32"))
    loaded = reloaded(root, tmp_path)
    loaded.epoch += 1
    assert loaded.epoch == 4
    with pytest.raises(AttributeError, match="'rate' cannot be set"):
        loaded.model.rate = 1.0


def test_attributes_of_layers_stay_as_they_are(tmp_path: Path) -> None:
    net = gt.layers.Sequential([gt.layers.Dropout(0.5)])
    net(np.ones((1, 2), "float32"))
    loaded = reloaded(net, tmp_path)
    loaded.layers[0].rate = 0.0
    assert loaded(np.ones((1, 2), "float32"), training=True).tolist() == [[1.0, 1.0]]


def test_saving_leaves_classes_as_they_were(live: Cubes, tmp_path: Path) -> None:
    gt.save(live, tmp_path / "m.h5")
    assert "__getattribute__" not in vars(gt.Module)
    with pytest.raises(SaveError):
        gt.save(Cubes(), tmp_path / "m.h5")
    assert "__getattribute__" not in vars(gt.Module)


class Watched(Absorbing):
    """Its call runs a function in another thread, as a program does that goes on meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.watch: Any = lambda: None

    def __call__(self, x: Any) -> Any:
        other = threading.Thread(target=self.watch)
        other.start()
        other.join()
        return super().__call__(x)


def test_other_threads_are_neither_heard_nor_disturbed(live: Cubes, tmp_path: Path) -> None:
    """A reader of attributes elsewhere is no part of what a graph has read."""
    module, seen = Watched(), set()
    module(np.ones(2, "float32"))
    expected = live(inputs_of("float32")).tolist()

    def meanwhile() -> None:
        assert (module.label, type(module), module.spare.item()) == ("a", Watched, 1.0)
        assert live(inputs_of("float32")).tolist() == expected
        seen.add("__getattribute__" in vars(gt.Module))

    module.watch = meanwhile
    loaded = reloaded(module, tmp_path)
    assert seen == {False}
    loaded.label = "b"
    with pytest.raises(AttributeError, match="'rate' cannot be set"):
        loaded.rate = 5
    assert "__getattribute__" not in vars(Watched)


def test_a_model_may_be_used_while_it_is_saved(tmp_path: Path) -> None:
    module = Absorbing()
    x = np.ones(2, "float32")
    expected = module(x).tolist()
    gt.save(module, tmp_path / "alone.h5")
    done, wrong = threading.Event(), list[Any]()

    def use() -> None:
        while not done.is_set():
            found = (module(x).tolist(), module.label, type(module), module.best)
            if found != (expected, "a", Absorbing, [0.5]):
                wrong.append(found)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            gt.save(module, tmp_path / "used.h5")
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert (tmp_path / "used.h5").read_bytes() == (tmp_path / "alone.h5").read_bytes()


# -- never called ----------------------------------------------------------------------------------


def test_a_module_that_was_never_called_is_refused_when_saving(tmp_path: Path) -> None:
    root = gt.Module(name="root")
    root.net = gt.layers.Sequential([Cubes()])
    for module, place in (
        (Cubes(), ""),
        (root, " at 'net.layers.0'"),
        (root.net, " at 'layers.0'"),
    ):
        told = rf"module 'cubes' \(Cubes\){place} was never called.*Call it"
        with pytest.raises(SaveError, match=told):
            gt.save(module, tmp_path / "m.h5")
    assert not (tmp_path / "m.h5").exists()


def test_without_functions_a_module_that_was_never_called_is_saved(tmp_path: Path) -> None:
    loaded = reloaded(Cubes(), tmp_path, functions=False)
    assert_same_bits([loaded.w], [Cubes().w])
    loaded.rate = 1.0
    for name in ("halves", "__call__"):
        with pytest.raises((AttributeError, TypeError), match="functions=False"):
            getattr(loaded, name)(1.0)
    assert "proves nothing" in gt.saving.verify(tmp_path / "model.h5").table()


def test_what_counts_as_called(tmp_path: Path) -> None:
    class Declared(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None])])
        def f(self, x: Any) -> Any:
            return x * 2.0

        def __call__(self, x: Any) -> Any:
            return self.f(x)

    gt.save(Declared(), tmp_path / "a.h5")
    gt.save(gt.Module(name="settings"), tmp_path / "b.h5")
    gt.save(gt.layers.Sequential([gt.layers.Dense(2)]), tmp_path / "c.h5")
    assert gt.load(tmp_path / "c.h5")(np.ones((1, 2), "float32")).shape == (1, 2)


# -- float64 ---------------------------------------------------------------------------------------


class Weights(gt.Module):
    def __init__(self, dtype: str) -> None:
        super().__init__()
        self.w = gt.Variable(np.ones(2, dtype))

    def __call__(self, x: Any) -> Any:
        return x * self.w


@pytest.mark.parametrize(
    ("weights", "data", "message"),
    [
        ("float64", "float64", r"weights\.w: float64.*astype\(\"float32\"\)"),
        ("float64", "float32", r"weights\.w: float64"),
        ("float32", "float64", "weights has float32 variables, but was only called with float64"),
        ("float32", "float32", ""),
    ],
)
def test_float64_by_accident_is_told_when_saving(
    weights: str, data: str, message: str, tmp_path: Path
) -> None:
    module = Weights(weights)
    module(np.ones(2, data))
    if message:
        with pytest.warns(UserWarning, match=message) as caught:
            gt.save(module, tmp_path / "m.h5")
        assert len(caught) == 1
    else:
        with warnings.catch_warnings(action="error"):
            gt.save(module, tmp_path / "m.h5")


def test_float64_that_was_asked_for_is_no_accident(tmp_path: Path) -> None:
    net = gt.layers.Sequential([gt.layers.Dense(2, dtype="float64")])
    net(np.ones((1, 2)))
    with warnings.catch_warnings(action="error"):
        gt.save(net, tmp_path / "net.h5")
        gt.set_default_dtype("float64")
        try:
            gt.save(Weights("float64"), tmp_path / "m.h5", functions=False)
        finally:
            gt.set_default_dtype("float32")
    layer = gt.layers.Dense(2)
    layer(np.ones((1, 2)))
    with pytest.warns(UserWarning, match=r"dense\.kernel, dense\.bias: float64"):
        gt.save(layer, tmp_path / "dense.h5")


class Open(gt.Module):
    """Python values among ``*args`` and ``**kwargs`` select the trace, as does their absence."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = gt.layers.Dropout(0.5)

    def __call__(self, x: Any, **settings: Any) -> Any:
        by = settings.pop("by", 0.0)
        return self.dropout(x, **settings) + by

    @gt.function
    def scaled(self, x: Any, *by: float) -> Any:
        return x * (by[0] if by else 1.0)

    @gt.function
    def shifted(self, x: Any, first: float = 1.0, **more: Any) -> Any:
        return x + first * more.get("by", 0.0) + len(more)


@pytest.mark.parametrize("reverse", [False, True])
def test_arguments_left_out_of_open_ones_are_not_those_of_a_trace(
    reverse: bool, tmp_path: Path
) -> None:
    x = inputs_of("float32")
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("__call__", (), {"training": True}),
        ("__call__", (), {}),
        ("__call__", (), {"training": False, "by": 2.0}),
        ("scaled", (3.0,), {}),
        ("scaled", (), {}),
        ("shifted", (), {"by": 4.0, "unused": None}),
        ("shifted", (), {"by": 4.0}),
        ("shifted", (2.0,), {"by": 4.0}),
        ("shifted", (), {}),
    ]
    module = Open()
    for name, args, settings in reversed(calls) if reverse else calls:
        getattr(module, name)(x, *args, **settings)
    loaded = reloaded(module, tmp_path)
    assert gt.saving.verify(tmp_path / "model.h5").ok
    for name, args, settings in calls[1:]:
        want = getattr(module, name)(x, *args, **settings)
        assert_same_bits([getattr(loaded, name)(x, *args, **settings)], [want])


def test_a_trace_whose_open_arguments_are_not_passed_is_not_run(tmp_path: Path) -> None:
    x = inputs_of("float32")
    module = Open()
    module(x, training=True)
    module.scaled(x, 3.0)
    loaded = reloaded(module, tmp_path)
    for call in (loaded, loaded.scaled):
        with pytest.raises(TypeError, match=r"expected arguments|no saved trace takes"):
            call(x)


class Either(gt.Module):
    """Functions of a number that may be Python's or a tensor."""

    @gt.function
    def times(self, x: Any, by: Any = 3) -> Any:
        return x * by

    @gt.function
    def doubled(self, x: Any, sure: Any = True) -> Any:
        return x * (2 if sure is True else 3)

    @gt.function
    def picked(self, x: Any, rows: Any) -> Any:
        return x[0] if isinstance(rows, list) else x * gt.sum(rows)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("times", [(), (gt.constant(3),), (4.0,), (True,), (np.float64(2.0),)]),
        ("doubled", [(), (gt.constant(True),), (False,), (1,), (np.bool_(True),)]),
        ("picked", [([0, 1],), (gt.constant([0, 1]),), (np.array([1, 1]),)]),
    ],
)
def test_python_numbers_run_their_own_trace_not_that_of_a_tensor(
    name: str, values: list[tuple[Any, ...]], reverse: bool, tmp_path: Path
) -> None:
    x = inputs_of("float32")
    module = Either()
    for rest in reversed(values) if reverse else values:
        getattr(module, name)(x, *rest)
    loaded = reloaded(module, tmp_path)
    assert gt.saving.verify(tmp_path / "model.h5").ok
    call, live = getattr(loaded, name), getattr(module, name)
    inside = gt.function(lambda x, *rest: call(x, *rest))
    for rest in values:
        want = live(x, *rest)
        assert_same_bits([call(x, *rest), inside(x, *rest)], [want, want])


def test_a_number_still_is_a_tensor_where_no_trace_has_it(tmp_path: Path) -> None:
    x = inputs_of("float32")
    module = Either()
    module.times(x, np.float32(3.0))
    module.times(x, 5)
    loaded = reloaded(module, tmp_path)
    assert_same_bits([loaded.times(x, 7), loaded.times(x, 2.5)], [x * 7, x * np.float32(2.5)])
