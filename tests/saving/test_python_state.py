"""What Python holds beside variables and modules: kept exactly, or said by name that it is not."""

from __future__ import annotations

import dataclasses
import enum
import functools
import warnings
from collections import OrderedDict, deque, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import assert_same_bits, run_isolated
from saved_modules import reloaded

import gradtape as gt
from gradtape.saving import SaveError

KEPT: dict[str, Any] = {
    "a list of all sorts": [1, 2.5, True, None, "a", 1 + 2j, b"\x00\xff", (), [], {}],
    "an array": np.arange(6.0, dtype="float32").reshape(2, 3),
    "an empty array": np.zeros((0, 3), "int8"),
    "an array of booleans": np.array([True, False]),
    "a scalar": np.float32(0.1),
    "an unsigned scalar": np.uint64(2**64 - 1),
    "a complex scalar": np.complex64(1 - 2j),
    "a dictionary by numbers": {3: "a", -1: [2], 0.5: None, None: 1, True + 1: "two"},
    "a dictionary by tuples": {(1, "a"): 1.0, (2, (3, None)): {"deep": 4}},
    "keys that no path may hold": {"a/b": 1, "": 2, "..": 3, "λ": 4, "with\nline": 5},
    "a set": {1, 2.5, "a", (1, 2), None},
    "a frozen set in a set": {frozenset({1, 2}), frozenset()},
    "a range": range(10, 0, -3),
    "a slice": slice(None, 5, 2),
    "a dtype": np.dtype("float16"),
    "bytes": bytes(range(256)),
    "special numbers": [float("nan"), -0.0, float("inf"), 1e-320],
    "arrays in containers": {"a": [np.ones(2), (np.zeros(1, "int64"),)]},
}


def module_with(value: Any) -> gt.Module:
    module = gt.Module(name="m")
    module.value = value
    return module


def told(value: Any) -> str:
    """Return a text that tells values apart, types and dtypes included."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{told(k)}: {told(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(told, value))})"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}({', '.join(sorted(map(told, value)))})"
    if isinstance(value, (np.ndarray, gt.Tensor)):
        array = np.asarray(value)
        return f"{type(value).__name__} {array.dtype} {array.shape} {array.tobytes()!r}"
    return f"{type(value).__name__} {value!r}"


@pytest.mark.parametrize("name", KEPT)
def test_a_value_comes_back_as_what_it_was(name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings(action="error"):
        loaded = reloaded(reloaded(module_with(KEPT[name]), tmp_path), tmp_path)
    assert told(loaded.value) == told(KEPT[name])


def test_tensors_and_ops_come_back_and_compute_in_a_fresh_process(tmp_path: Path) -> None:
    module = module_with([gt.tanh, {"t": gt.constant([0.5, 2.0])}])
    gt.save(module, tmp_path / "m.h5")
    printed = run_isolated(
        "op, held = gt.load(sys.argv[1]).value\n"
        "print(op(held['t']).numpy().tobytes().hex(), held['t'].dtype)\n",
        tmp_path / "m.h5",
    )
    expected = gt.tanh(gt.constant([0.5, 2.0])).numpy().tobytes().hex()
    assert printed.split() == [expected, "float32"]
    assert "gradtape: " not in gt.saving.inspect_text(tmp_path / "m.h5")


def test_files_are_the_same_for_the_same_state(tmp_path: Path) -> None:
    code = (
        "m = gt.Module('m')\n"
        "m.words = {'one', 'two', 'three', 'four', 'five', ('a', 1)}\n"
        "gt.save(m, sys.argv[1])\n"
    )
    files = [tmp_path / "a.h5", tmp_path / "b.h5"]
    for file in files:  # the order of a set of strings is another one in each process
        run_isolated(code, file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_shared_containers_and_arrays_are_shared_after_loading(tmp_path: Path) -> None:
    items, table, array, tensor = [1], {"a": 2}, np.ones(2), gt.constant([1.0])
    module = gt.Module(name="m")
    module.part = gt.Module(name="part")
    module.part.items, module.part.arrays = items, (array, tensor)
    module.items, module.again, module.inner = items, [items, table], {"table": table}
    module.table, module.array, module.tensor = table, array, tensor
    loaded = reloaded(reloaded(module, tmp_path), tmp_path)
    assert loaded.items is loaded.again[0] is loaded.part.items
    assert loaded.table is loaded.again[1] is loaded.inner["table"]
    assert loaded.array is loaded.part.arrays[0]
    assert loaded.tensor is loaded.part.arrays[1]
    loaded.items.append(2)
    assert loaded.again[0] == [1, 2]


def test_nested_sharing_does_not_grow_the_file(tmp_path: Path) -> None:
    value: list[Any] = [1]
    for _ in range(9):
        value = [value, value]
    gt.save(module_with(value), tmp_path / "m.h5")
    assert (tmp_path / "m.h5").stat().st_size < 12_000
    loaded = gt.load(tmp_path / "m.h5").value
    assert loaded[0] is loaded[1]


def test_a_container_that_holds_itself_is_refused_by_its_path(tmp_path: Path) -> None:
    inner: dict[Any, Any] = {}
    inner["up"] = (1, [inner])
    with pytest.raises(
        SaveError, match=r"m\.value\['up'\]\[1\]\[0\]: a container that holds itself"
    ):
        gt.save(module_with(inner), tmp_path / "m.h5")


# -- variables in odd places -----------------------------------------------------------------------


def test_variables_by_keys_of_any_kind_are_kept_where_they_were(tmp_path: Path) -> None:
    keys = [3, "3", -1, 0.5, (1, 2), "a/b", "..", None, "λ", "a", "a/b/c"]
    module = gt.Module(name="m")
    module.by = {key: gt.Variable(float(i)) for i, key in enumerate(keys)}
    module.by["modules"] = {7: gt.layers.Dense(2)}
    module.by["modules"][7](np.ones((1, 3), "float32"))
    loaded = reloaded(reloaded(module, tmp_path), tmp_path)
    assert [(key, loaded.by[key].item()) for key in keys] == [
        (key, float(i)) for i, key in enumerate(keys)
    ]
    assert_same_bits([loaded.by["modules"][7].kernel], [module.by["modules"][7].kernel])


def test_gradients_of_variables_by_numbers_are_kept_to_third_order(tmp_path: Path) -> None:
    class Poly(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.terms = {1: gt.Variable(0.5), 3: gt.Variable(-0.25)}
            self.order, self.table = {1, 3}, np.float32([1.0, 2.0])

        def __call__(self, x: Any) -> Any:
            total = x * self.table[0]
            for power in sorted(self.order):
                total = total + self.terms[power] * gt.sin(x) ** power
            return total * self.table[1]

    module = Poly()
    module(np.ones((2, 2), "float32"))
    loaded = reloaded(module, tmp_path)
    for batch in (1, 2, 3, 7):
        x = gt.constant(np.linspace(-1, 2, 2 * batch, dtype="float32").reshape(batch, 2))
        assert_same_bits(_three_orders(loaded, x), _three_orders(module, x))
    assert (loaded.order, told(loaded.table)) == (module.order, told(module.table))


def _three_orders(module: Any, x: Any) -> list[Any]:
    """Return values, and gradients of three orders, of the input and all variables."""
    sources = [x, *module.variables]
    results: list[Any] = []

    def descend(order: int) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            value = gt.sum(module(x)) if order == 0 else descend(order - 1)
        found = tape.gradient(value, sources)
        kept = [gt.zeros_like(s) if g is None else g for s, g in zip(sources, found, strict=True)]
        results.extend(kept)
        return sum((gt.sum(gt.sin(g)) for g in kept[1:]), gt.sum(gt.sin(kept[0])))

    results.append(module(x))
    descend(2)
    return results


class Helper:
    """No module."""

    def __init__(self, item: Any) -> None:
        self.item = item


class Slotted:
    __slots__ = ("item",)

    def __init__(self, item: Any) -> None:
        self.item = item


@dataclasses.dataclass
class Record:
    item: Any


HIDING: dict[str, Any] = {
    "an object": Helper,
    "an object with slots": Slotted,
    "a dataclass in a list": lambda item: [Record(item)],
    "a deque": lambda item: deque([item]),
    "a list in an object": lambda item: Helper([{"a": item}]),
    "a bound method": lambda item: Helper(item).__init__,  # type: ignore[misc]
    "a partial function": lambda item: functools.partial(print, item),
    "a module in an object": lambda item: Helper(module_with(item)),
    "a module in a set": lambda item: {module_with(item)},
}


@pytest.mark.parametrize("name", HIDING)
def test_a_variable_in_an_object_is_refused_if_no_function_reads_it(
    name: str, tmp_path: Path
) -> None:
    module = module_with(HIDING[name](gt.Variable(1.0, name="lost")))
    with pytest.raises(SaveError, match=r"m\.value.*: variable 'lost' would be lost.*Module"):
        gt.save(module, tmp_path / "m.h5")


def test_a_variable_in_an_object_is_kept_if_a_function_reads_it(tmp_path: Path) -> None:
    class Scaled(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.helper = Helper(gt.Variable(3.0))

        def __call__(self, x: Any) -> Any:
            return x * self.helper.item

    module = Scaled()
    module(np.ones(2, "float32"))
    with pytest.warns(UserWarning, match=r"scaled\.helper \(an object of class Helper\)"):
        loaded = reloaded(module, tmp_path)
    assert loaded(np.ones(1, "float32")).tolist() == [3.0]
    with pytest.raises(AttributeError, match=r"no 'helper' \(an object of class Helper cannot"):
        _ = loaded.helper


def test_variables_in_a_set_come_back_in_it(tmp_path: Path) -> None:
    loaded = reloaded(module_with({gt.Variable(1.0), gt.Variable(2.0)}), tmp_path)
    assert sorted(v.item() for v in loaded.value) == [1.0, 2.0]
    assert loaded.variables == ()


# -- what is not kept ------------------------------------------------------------------------------


class Color(enum.Enum):
    RED = 3


Pair = namedtuple("Pair", "a b")

TOLD: dict[str, tuple[Any, str, Any]] = {
    "an object": (
        [Helper(1)],
        r"m\.value\[0\] \(an object of class Helper; None is in its",
        [None],
    ),
    "a function in a list": (
        [len],
        r"m\.value\[0\] \(the code of 'len'; None is in its place",
        [None],
    ),
    "an array of objects": (
        {"a": np.array([None])},
        r"m\.value\['a'\] \(an array of dtype object; None",
        {"a": None},
    ),
    "an array of text": ((np.array(["a"]),), r"m\.value\[0\] \(an array of dtype <U1", (None,)),
    "a masked array": ([np.ma.ones(2)], r"\(an array of class MaskedArray; None", [None]),
    "a date": ((np.datetime64("2020-01-01"),), r"object of class datetime64", (None,)),
    "a named tuple": (Pair(1, 2), r"m\.value \(a Pair comes back as a plain tuple\)", (1, 2)),
    "an ordered dictionary": (
        OrderedDict(b=1, a=2),
        r"a OrderedDict comes back as a plain dict",
        {"b": 1, "a": 2},
    ),
    "an enumeration": (Color.RED, r"m\.value \(a Color comes back as its value\)", 3),
    "a key of another kind": ({Color.RED: 1, 2: 3}, r"its key is an object of class Color", {2: 3}),
    "an element of a set": ({Color.RED, Helper}, r"m\.value\{\.\.\.\} \(the code of 'Helper'", {3}),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_not_kept_is_told_once_by_its_path(name: str, tmp_path: Path) -> None:
    value, message, expected = TOLD[name]
    with pytest.warns(UserWarning, match=message) as caught:
        loaded = reloaded(module_with(value), tmp_path)
    assert len(caught) == 1
    assert told(loaded.value) == told(expected)


def test_one_warning_names_every_path(tmp_path: Path) -> None:
    model = gt.Module(name="model")
    model.blocks = [gt.Module(name="block") for _ in range(4)]
    model.blocks[3].cache = Helper(1)
    model.blocks[0].table = {"by": [Helper(2)]}
    model.log = Helper(3)
    with pytest.warns(UserWarning, match="save: not saved: ") as caught:
        gt.save(model, tmp_path / "m.h5")
    (warning,) = caught
    assert warning.filename == __file__
    for path in ("model.blocks[3].cache", "model.blocks[0].table['by'][0]", "model.log"):
        assert f"{path} (an object of class Helper" in str(warning.message)


def test_code_in_an_attribute_is_no_surprise_and_says_so_when_asked_for(tmp_path: Path) -> None:
    with warnings.catch_warnings(action="error"):
        loaded = reloaded(module_with(lambda x: x), tmp_path)
    with pytest.raises(AttributeError, match=r"no 'value' \(the code of '<lambda>' cannot"):
        _ = loaded.value


# -- classes that the reader knows -----------------------------------------------------------------


def test_attributes_set_on_layers_come_back_in_a_fresh_process(tmp_path: Path) -> None:
    net = gt.layers.Sequential([gt.layers.Dense(2), gt.layers.Dropout(0.5)])
    net(np.ones((1, 3), "float32"))
    net.layers[0].note, net.layers[0].groups = "first", {0: [1.5]}
    net.history = [np.arange(3), {"loss": 0.5}]
    with warnings.catch_warnings(action="error"):
        gt.save(net, tmp_path / "net.h5")
    printed = run_isolated(
        "net = gt.load(sys.argv[1])\n"
        "print(type(net).__name__, net.layers[0].note, net.layers[0].groups, net.history)\n",
        tmp_path / "net.h5",
    )
    assert printed.strip() == "Sequential first {0: [1.5]} [array([0, 1, 2]), {'loss': 0.5}]"


def test_what_a_layer_cannot_keep_is_told(tmp_path: Path) -> None:
    net = gt.layers.Sequential([gt.layers.Dense(2)])
    net(np.ones((1, 3), "float32"))
    net.layers[0].owner = Helper(1)
    with pytest.warns(UserWarning, match=r"sequential\.layers\[0\]\.owner \(an object of class He"):
        gt.save(net, tmp_path / "net.h5")
    net.layers[0].owner = Helper(gt.Variable(1.0))
    with pytest.raises(SaveError, match=r"layers\[0\]\.owner\.item: variable 'Variable'"):
        gt.save(net, tmp_path / "net.h5")


def test_saving_layers_draws_no_random_numbers(tmp_path: Path) -> None:
    def drawn(saves: bool) -> Any:
        gt.random.set_seed(3)
        net = gt.layers.Sequential([gt.layers.Dense(2), gt.layers.Dropout(0.5)])
        net(np.ones((1, 3), "float32"))
        if saves:
            gt.save(net, tmp_path / "net.h5")
        return gt.random.uniform((4,)).numpy()

    assert_same_bits([drawn(True)], [drawn(False)])


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["class_name", "untraced", "summary", "λ"])
@pytest.mark.parametrize("value", [1, gt.Variable(1.0)], ids=["value", "variable"])
def test_a_name_that_loaded_modules_have_themselves_is_refused_when_saving(
    name: str, value: Any, tmp_path: Path
) -> None:
    module = gt.Module(name="m")
    vars(module)[name] = value
    with pytest.raises(SaveError, match=rf"m\.{name}: '{name}' cannot be the name of an attribute"):
        gt.save(module, tmp_path / "m.h5")


def test_a_method_of_a_layer_that_a_value_hides_is_refused_when_saving(tmp_path: Path) -> None:
    layer = gt.layers.Dense(2)
    layer(np.ones((1, 3), "float32"))
    layer.count_params = 3  # type: ignore[method-assign, assignment]
    with pytest.raises(SaveError, match="'count_params' cannot be the name"):
        gt.save(layer, tmp_path / "m.h5")
