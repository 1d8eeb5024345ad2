"""pickle, copy, joblib and pools of processes: arrays and traces go as the bytes of a file."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pretend_gpu
import pytest
from fresh_process import assert_same_bits
from odd_modules import with_rules
from test_format_classes import CLASSES, used

import gradtape as gt
from gradtape.saving import DamagedFile, LoadError

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
X = np.linspace(-1.0, 1.0, 15, dtype="float32").reshape(3, 5)


def through(value: Any, protocol: int | None = None) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


def through_joblib(value: Any) -> Any:
    stream = io.BytesIO()
    joblib.dump(value, stream)
    stream.seek(0)
    return joblib.load(stream)


def twice(x: Any) -> Any:
    return x * 2.0


@gt.function
def thrice(x: Any) -> Any:
    return x * 3.0


class Own(gt.Module):
    """A class of a user, with state of Python, a method that is traced and a shared variable."""

    made = 0

    def __init__(self) -> None:
        super().__init__("own")
        type(self).made += 1
        self.w = gt.Variable(np.arange(5.0, dtype="float32"), name="weights")
        self.same = self.w
        self.settings = {"rate": 0.5, 3: {"a", "b"}}
        self.act = twice
        self.parts = [gt.layers.Dense(2, activation="relu"), gt.Variable(1, trainable=False)]

    def __call__(self, x: Any, training: bool = False) -> Any:
        return self.parts[0](self.act(x * self.w))

    @gt.function
    def scaled(self, x: Any) -> Any:
        return x * self.w


class Tagged(gt.Variable):
    """A variable with attributes."""

    tag = "none"


def called() -> Own:
    model = Own()
    model(X)
    model.scaled(X)
    return model


def step(model: Any, optimizer: Any) -> Any:
    with gt.GradientTape() as tape:
        loss = gt.sum(model(X) ** 2.0)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


def values(module: gt.Module) -> list[Any]:
    return [v.numpy() for v in module.variables]


# -- tensors and variables -------------------------------------------------------------------------

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128"
).split()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tensors_and_variables_of_every_dtype_and_shape_come_back(protocol: int) -> None:
    for dtype in DTYPES:
        for shape in ((), (0,), (3,), (2, 0, 3), (2, 3)):
            array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
            x = through(gt.constant(array), protocol)
            v = through(gt.Variable(array, name="v", trainable=False), protocol)
            assert type(x) is gt.Tensor
            assert (type(v), v.name, v.trainable) == (gt.Variable, "v", False)
            for found in (x, v):
                assert (found.shape, found.dtype) == (shape, np.dtype(dtype))
                np.testing.assert_array_equal(found.numpy(), array)
    v.assign(v + 1)


def test_a_tensor_that_was_recorded_comes_back_as_a_value() -> None:
    x = gt.Variable([1.0, 2.0])
    with gt.GradientTape() as tape:
        y = x * 2.0
        z = through(y) * 3.0
    assert z.tolist() == [6.0, 12.0]
    assert tape.gradient(z, x) is None


def test_values_keep_their_bits_and_their_order_in_memory_does_not_matter() -> None:
    array = np.array([[np.nan, -0.0, np.inf], [1e-45, 1.0, -1.0]], "float32")
    array.view("uint32")[0, 0] = 0x7FC01234
    for given in (array, np.asfortranarray(array)):
        assert_same_bits([through(gt.constant(given)).numpy()], [array])


def test_a_variable_comes_back_with_its_class_and_attributes() -> None:
    v = Tagged([1.0], name="t")
    v.tag, v.me = "mine", v
    found = through(v)
    assert (type(found), found.tag, found.me is found, found.name) == (Tagged, "mine", True, "t")
    assert isinstance(found.lock, type(threading.RLock()))


def test_what_is_one_object_stays_one() -> None:
    a, b = Own(), Own()
    b.w = a.w
    optimizer = gt.training.Adam(0.1)
    c, d, w = through((a, b, a.w))
    assert c.w is d.w is c.same is w
    assert c.w is not a.w
    step(a, optimizer)
    e, held = through((a, optimizer))
    assert_same_bits(values(e), values(a))
    for _ in range(2):
        assert_same_bits([step(e, held).numpy()], [step(a, optimizer).numpy()])
    assert_same_bits(values(e), values(a))
    assert_same_bits(values(held), values(optimizer))


def test_buffers_may_go_beside_the_pickle() -> None:
    model = called()
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(model, 5, buffer_callback=buffers.append)
    assert len(buffers) == len(model.variables)
    for given in (buffers, [bytes(b) for b in buffers], [bytearray(b) for b in buffers]):
        assert_same_bits(values(pickle.loads(data, buffers=given)), values(model))


# -- modules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_users_module_comes_back_as_its_own_class_without_running_init(protocol: int) -> None:
    model = called()
    made = Own.made
    found = through(model, protocol)
    assert (type(found), found.name, Own.made) == (Own, "own", made)
    assert found.settings == {"rate": 0.5, 3: {"a", "b"}}
    assert found.act is twice
    assert found.same is found.w
    assert list(found.named_variables) == list(model.named_variables)
    assert_same_bits([found(X).numpy(), *values(found)], [model(X).numpy(), *values(model)])
    found.w.assign(found.w * 2.0)
    assert_same_bits([found.scaled(X).numpy()], [model.scaled(X).numpy() * 2.0])


def test_a_module_that_was_pickled_can_be_saved(tmp_path: Path) -> None:
    model = through(called())
    gt.save(model, tmp_path / "a.h5")
    assert_same_bits([gt.load(tmp_path / "a.h5")(X).numpy()], [model(X).numpy()])


def test_frozen_modules_thaw_what_they_trained_before() -> None:
    model = called()
    model.trainable = False
    found = through(model)
    assert not found.trainable_variables
    found.trainable = True
    model.trainable = True
    assert len(found.trainable_variables) == len(model.trainable_variables) > 0


def test_a_class_that_has_a_way_of_its_own_goes_by_it() -> None:
    assert through(Wayward(3)).n == 3
    assert through(Stateful(4)).n == -4


class Wayward(gt.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def __reduce__(self) -> Any:
        return Wayward, (self.n,)


class Stateful(Wayward):
    __reduce__ = object.__reduce__

    def __getstate__(self) -> Any:
        return [self.n]

    def __setstate__(self, state: Any) -> None:
        self.n = -state[0]


@pytest.mark.parametrize("way", [through, through_joblib, copy.copy, copy.deepcopy])
def test_every_known_module_goes_every_way(way: Any) -> None:
    modules = [module for name in CLASSES for module in used(name)]
    assert len(modules) > 100
    for module in modules:
        found = way(module)
        assert type(found) is type(module)
        assert_same_bits(values(found), values(module))


def test_random_numbers_go_on_where_they_were() -> None:
    for generator in (gt.random.Generator(5), gt.random.Generator(), gt.layers.Dropout(0.5)):
        draw = generator.normal if isinstance(generator, gt.random.Generator) else generator
        arguments = ((4,),) if isinstance(generator, gt.random.Generator) else (X, True)
        draw(*arguments)
        found = through(generator)
        same = found.normal if isinstance(generator, gt.random.Generator) else found
        assert_same_bits([same(*arguments).numpy()], [draw(*arguments).numpy()])


def test_a_loaded_module_comes_back_with_its_functions(tmp_path: Path) -> None:
    @gt.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 1.0, lambda g: gt.clip(g, -1.0, 1.0) * 5.0

    class Odd(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable([2.0, 3.0])
            self.table = np.arange(6.0, dtype="float32").reshape(3, 2)

        @gt.function
        def __call__(self, x: Any) -> Any:
            return clipped(x * self.w) + gt.constant(self.table)[0]

        @gt.function(input_signature=[gt.TensorSpec(["n", 2])])
        def many(self, x: Any) -> Any:
            self.w.assign_add([1.0, 1.0])
            return gt.sum(x * self.w, axis=0)

    model = Odd()
    model(gt.ones(2))
    gt.save(model, tmp_path / "a.h5")
    loaded = gt.load(tmp_path / "a.h5")
    for protocol in PROTOCOLS:
        found, (w,) = through((loaded, loaded.variables), protocol)
        assert found.variables[0] is w
        assert (type(found), found.class_name) == (type(loaded), "Odd")
        results = []
        for module in (found, copy.deepcopy(loaded)):
            x = gt.constant([1.0, 4.0])
            with gt.GradientTape() as tape:
                tape.watch(x)
                y = gt.sum(module(x))
            own = module.variables[0]
            gradients = tape.gradient(y, [x, own])
            many = module.many(gt.ones((3, 2)))
            results.append([y.numpy(), *(g.numpy() for g in gradients), many.numpy(), own.numpy()])
        assert_same_bits(*results)
    gt.save(found, tmp_path / "b.h5")
    assert gt.saving.verify(tmp_path / "b.h5").ok


def test_without_its_custom_gradient_a_function_stays_without(tmp_path: Path) -> None:
    @gt.custom_gradient
    def custom(x: Any) -> Any:
        return x * 2.0, lambda g: g

    class M(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([])])
        def f(self, x: Any) -> Any:
            return custom(x)

    gt.save(M(), tmp_path / "a.h5", custom_gradients=False)
    loaded = gt.load(tmp_path / "a.h5")
    assert loaded.f(3.0).item() == 6.0
    found = through(loaded)
    assert found.f(3.0).item() == 6.0
    with pytest.raises(LookupError, match="saved without"):
        gt.grad(found.f)(3.0)


def test_a_gradient_rule_that_a_file_brought_goes_along(tmp_path: Path) -> None:
    class Steep(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([])])
        def f(self, x: Any) -> Any:
            return gt.exp(x) * 2.0

    with with_rules({"exp": lambda g, out: 3.0 * g * out}):
        gt.save(Steep(), tmp_path / "a.h5")
    loaded = gt.load(tmp_path / "a.h5")
    for f in (loaded.f, through(loaded.f), through(loaded).f):
        assert gt.grad(f)(0.0).item() == 6.0


def test_a_model_loaded_lazily_is_read_when_it_is_pickled(tmp_path: Path) -> None:
    model = called()
    gt.save(model, tmp_path / "a.h5")
    loaded = gt.load(tmp_path / "a.h5", lazy=True)
    data = pickle.dumps(loaded)
    del loaded
    (tmp_path / "a.h5").unlink()
    assert_same_bits(values(pickle.loads(data)), values(model))


def test_variables_come_back_on_the_current_backend() -> None:
    plugin = pretend_gpu.Plugin("pretend_pickling")
    gt.register_plugin(plugin, name="pretend_pickling")
    try:
        model = called()
        expected = values(model)
        model.to("pretend_pickling:1")
        x = model.w * 2.0
        data = pickle.dumps((model, x))
        found, y = pickle.loads(data)
        assert_same_bits(values(found), expected)
        assert type(y.array) is np.ndarray
        with gt.backend("pretend_pickling:1"):
            found, y = pickle.loads(data)
        assert type(found.w.array) is type(y.array) is plugin.library.ndarray
    finally:
        gt.unregister_plugin("pretend_pickling")


# -- functions -------------------------------------------------------------------------------------


def test_functions_go_by_name_methods_by_their_object_and_traces_as_bytes() -> None:
    assert through(thrice) is copy.deepcopy(thrice) is copy.copy(thrice) is thrice
    model = called()
    method = through(model.scaled)
    assert_same_bits([method(X).numpy()], [model.scaled(X).numpy()])
    model_again, method = through((model, model.scaled))
    assert method is model_again.scaled
    made = through(gt.function(twice, input_signature=[gt.TensorSpec([None])]))
    assert (made.name, made.input_signature) == ("twice", (gt.TensorSpec([None]),))
    assert made([1.0]).tolist() == [2.0]
    trace, w = through((model.scaled.get_concrete_function(X), model.w))
    w.assign(w * 8.0)
    assert_same_bits([trace(X).numpy()], [model.scaled(X).numpy() * 8.0])


def test_specs_and_ops_come_back() -> None:
    spec = gt.TensorSpec(["batch", None, 3], "int32", "x")
    for protocol in PROTOCOLS:
        found = through(spec, protocol)
        assert found == spec
        assert (found.names, found.name) == (spec.names, "x")
        assert through(gt.nn.relu, protocol) is gt.nn.relu
    assert len(pickle.dumps(gt.nn.relu)) < 200


# -- other processes -------------------------------------------------------------------------------


def loss_of(model: Any, optimizer: Any) -> Any:
    loss = step(model, optimizer)
    return loss, model, optimizer


def failing(model: Any) -> None:
    raise DamagedFile("in a worker")


def test_a_pool_of_fresh_processes_takes_and_returns_models() -> None:
    model, optimizer = called(), gt.training.Adam(0.1)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        work = pool.submit(loss_of, model, optimizer)
        method = pool.submit(model.scaled, gt.constant(X))
        failed = pool.submit(failing, model)
        loss, found, held = work.result(timeout=120)
        assert_same_bits([method.result(timeout=60).numpy()], [model.scaled(X).numpy()])
        with pytest.raises(DamagedFile, match="in a worker"):
            failed.result(timeout=60)
    assert_same_bits([loss.numpy()], [step(model, optimizer).numpy()])
    assert_same_bits(values(found), values(model))
    assert_same_bits([step(found, held).numpy()], [step(model, optimizer).numpy()])


@pytest.mark.parametrize("compress", [0, 3])
def test_joblib_keeps_models(compress: int, tmp_path: Path) -> None:
    model, optimizer = called(), gt.training.Adam(0.1)
    step(model, optimizer)
    joblib.dump({"model": model, "optimizer": optimizer}, tmp_path / "a.joblib", compress)
    held = joblib.load(tmp_path / "a.joblib")
    assert_same_bits(values(held["model"]), values(model))
    step(model, optimizer)
    step(held["model"], held["optimizer"])
    assert_same_bits(values(held["model"]), values(model))
    assert joblib.hash(model) == joblib.hash(copy.deepcopy(model))


def test_picklers_of_code_take_classes_and_functions_without_a_name() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")

    class Local(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable(2.0)
            self.act = lambda x: x + 1.0

        def __call__(self, x: Any) -> Any:
            return self.act(x * self.w)

    model = Local()
    model(gt.constant(1.0))
    assert pickle.loads(cloudpickle.dumps(model))(gt.constant(3.0)).item() == 7.0
    assert copy.deepcopy(model)(gt.constant(3.0)).item() == 7.0
    assert copy.copy(model).w is model.w


def trained_apart(*names: str | None) -> tuple[Any, list[gt.Variable]]:
    """Return an optimizer and variables, unpickled apart; of the same values, in other states."""
    variables = [gt.Variable([0.0], name=name) for name in names]
    optimizer = gt.training.Adam(0.0)
    ones = [gt.constant([i + 1.0]) for i in range(len(names))]
    optimizer.apply_gradients(zip(ones, variables, strict=True))
    optimizer.learning_rate = 1.0
    return pickle.loads(pickle.dumps(optimizer)), pickle.loads(pickle.dumps(variables))


def moments(optimizer: Any, variables: list[gt.Variable]) -> list[float]:
    zeros = [gt.constant([0.0]) for _ in variables]
    optimizer.apply_gradients(zip(zeros, variables, strict=True))
    found = {v.id: x.item() for slot, v, x in optimizer.states() if slot == optimizer.slots[0]}
    return [round(found[v.id] / 0.09, 4) for v in variables]


def test_an_optimizer_pickled_apart_takes_equal_variables_in_order_or_by_name() -> None:
    optimizer, variables = trained_apart(None, None)
    assert moments(optimizer, variables) == [1.0, 2.0]
    optimizer, variables = trained_apart("a", "b")
    assert moments(optimizer, variables[::-1]) == [2.0, 1.0]
    optimizer, variables = trained_apart("a", "b")
    assert moments(optimizer, variables[1:]) == [2.0]


def test_an_optimizer_pickled_apart_refuses_what_is_ambiguous() -> None:
    optimizer, variables = trained_apart(None, None)
    with pytest.raises(ValueError, match=r"2 of shape \(1,\) have the same value and different"):
        optimizer.apply_gradients([(gt.constant([0.0]), variables[1])])
    optimizer, variables = trained_apart(None)
    with pytest.raises(ValueError, match=r"1 of shape .* this step has 2 of them"):
        moments(optimizer, [*variables, gt.Variable([0.0])])
    # equal states: it does not matter which is whose
    both, optimizer = [gt.Variable([0.0]), gt.Variable([0.0])], gt.training.Adam(0.0)
    optimizer.apply_gradients([(gt.constant([1.0]), v) for v in both])
    alone = pickle.loads(pickle.dumps(optimizer))
    assert moments(alone, pickle.loads(pickle.dumps(both))[:1]) == [1.0]


# -- refusals --------------------------------------------------------------------------------------


def test_a_function_without_a_name_is_refused_by_the_attribute_that_holds_it() -> None:
    places: dict[str, Any] = {
        "Own.act": lambda model, f: setattr(model, "act", f),
        r"Own.settings\['f'\]\[1\]": lambda model, f: model.settings.update(f=[0, f]),
        "Dense.activation": lambda model, f: model.parts.append(gt.layers.Dense(2, f)),
        "Own.traced": lambda model, f: setattr(model, "traced", gt.function(f)),
    }
    for where, put in places.items():
        model = Own()
        put(model, lambda x: x)
        with pytest.raises(pickle.PicklingError, match=rf"{where} is .*<lambda>.*gradtape\.save"):
            pickle.dumps(model)
        assert type(copy.deepcopy(model)) is Own


def test_lists_that_hold_themselves_go_along() -> None:
    module: Any = gt.Module("cyclic")
    module.items = [gt.Variable(1.0)]
    module.items.append(module.items)
    for again in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        assert again.items[1] is again.items
        assert again.variables[0].item() == 1.0
    module.items.append(lambda x: x)
    with pytest.raises(pickle.PicklingError, match=r"Module\.items\[2\] is .*lambda"):
        pickle.dumps(module)


def test_what_belongs_to_one_process_is_refused_in_words() -> None:
    x = gt.Variable([1.0])
    with gt.GradientTape() as tape:
        _ = x * 2.0
    forward = gt.ForwardAccumulator(x, gt.ones(1))
    for recorder, name in ((tape, "GradientTape"), (forward, "ForwardAccumulator")):
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=f"a {name} cannot be copied or pickled"):
                copied(recorder)

    @gt.function
    def traced(x: Any) -> Any:
        with pytest.raises(gt.errors.TraceError, match="not known while a function is traced"):
            pickle.dumps(x)
        return x

    traced(gt.constant(1.0))

    def mapped(x: Any) -> Any:
        with pytest.raises((TypeError, gt.errors.GradtapeError), match="vmap"):
            pickle.dumps(x)
        return x

    gt.vmap(mapped)(gt.ones(2))


def test_damage_in_what_is_a_file_is_our_error() -> None:
    v = gt.Variable(np.arange(1000.0))
    data = bytearray(pickle.dumps(v))
    begin = data.index(b"\x89HDF")
    end = data.index(np.arange(1000.0).tobytes()) + 8000
    random = np.random.default_rng(0)
    places = [*range(begin + 8, begin + 300), *random.integers(begin + 300, end, 200).tolist()]
    silent = 0
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(random.integers(8))
        try:
            found = pickle.loads(damaged)
        except LoadError:
            continue
        assert_same_bits([found.numpy()], [v.numpy()])  # between two datasets
        silent += 1
    assert silent < len(places) // 4
    with pytest.raises(LoadError):
        pickle.loads(data.replace(b"\x89HDF", b"\x89HDE"))


def test_a_pickle_is_loaded_where_nothing_was_imported_yet() -> None:
    data = pickle.dumps((gt.Variable([1.0, 2.0]), gt.constant(3.0)))
    code = "import pickle, sys; print(*pickle.load(sys.stdin.buffer))"
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert b"shape=(2,)" in done.stdout


POOL = """
import joblib
import gradtape as gt

class Own(gt.Module):
    def __init__(self):
        super().__init__()
        self.w = gt.Variable(2.0)
        self.act = lambda x: x + 1.0

    @gt.function
    def __call__(self, x):
        return self.act(x * self.w)

@gt.function
def free(x):
    return x * 5.0

def work(model, i):
    return model(gt.constant(float(i))).item() + free(gt.constant(0.0)).item(), model

if __name__ == "__main__":
    model = Own()
    results = joblib.Parallel(2)(joblib.delayed(work)(model, i) for i in range(3))
    print([value for value, _ in results], {type(x) is Own for _, x in results})
"""


def test_a_pool_of_joblib_takes_what_the_main_program_defines(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    (tmp_path / "main.py").write_text(POOL)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "main.py")], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[1.0, 3.0, 5.0] {True}\n", done.stderr
