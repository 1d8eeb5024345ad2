"""Files that lie about optimizers of unknown classes: each lie is refused by name, and quickly."""

from __future__ import annotations

import copy
import re
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine import seconds_of
from rewriting import Draft

import gradtape as gt
from gradtape.saving import DamagedFile, UnsafeFile

X = np.linspace(-1.0, 1.0, 64, dtype="float32").reshape(16, 4)


class Own(gt.training.Optimizer):
    slots = ("velocity",)

    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        velocity = state[0] * 0.9 + gradient
        return value - settings[0] * velocity, (velocity,)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = gt.Module("root")
    root.model = gt.layers.Sequential([gt.layers.Dense(3), gt.layers.Dense(1)])
    root.optimizer = Own(0.1)
    train(root)
    path = tmp_path_factory.mktemp("optimizers") / "root.h5"
    gt.save(root, path)
    return path


def train(root: Any) -> Any:
    given = {"loss": "mse", "epochs": 1, "batch_size": 8, "verbose": 0}
    return gt.training.fit(root.model, (X, X[:, :1]), optimizer=root.optimizer, **given)


def changed(template: Path, path: Path, change: Callable[[Any, Any, Draft], Any]) -> Path:
    draft = Draft.of(template)
    manifest = draft.json()
    change(next(x for x in manifest["modules"] if "optimizer" in x), manifest, draft)
    draft.put(manifest)
    return draft.write(path)


def attribute(name: str, value: Any) -> Callable[[Any, Any, Draft], Any]:
    return lambda o, m, d: o["attributes"].update({name: value})


def function(name: str, number: int) -> Callable[[Any, Any, Draft], Any]:
    return lambda o, m, d: o["functions"].update({name: number})


def excluded(value: Any) -> Callable[[Any, Any, Draft], Any]:
    return lambda o, m, d: o["optimizer"].update(excluded=value)


def of_weights(o: Any, m: Any, d: Draft) -> None:
    o["attributes"]["velocity"] = {"list": [{"variable": i} for i in o["trained"]]}


def of_its_own_state(o: Any, m: Any, d: Draft) -> None:
    o["trained"] = [x["variable"] for x in o["attributes"]["velocity"]["list"]]


def twice(o: Any, m: Any, d: Draft) -> None:
    o["attributes"]["other"] = {"list": [*o["attributes"]["velocity"]["list"]]}
    o["attributes"]["slots"] = {"tuple": [{"value": "velocity"}, {"value": "other"}]}


def in_update(change: Callable[[Any], Any]) -> Callable[[Any, Any, Draft], Any]:
    """Return a change of the text of the formula's trace."""

    def edit(o: Any, m: Any, d: Draft) -> None:
        path = m["functions"][o["functions"]["update"]]["traces"][0]["dataset"]
        record = d.json(path)
        change(record)
        d.put(record, path)

    return edit


def state_of_lists(record: Any) -> None:
    given = record["arguments"]["tuple"][0]["tuple"]
    given[2] = {"tuple": [{"list": given[2]["tuple"]}]}


def nested_results(record: Any) -> None:
    both = record["results"]["tuple"]
    both[1] = {"tuple": [both[1]]}


NUMBER = "not a number"
LIES: dict[str, tuple[Callable[[Any, Any, Draft], Any], str]] = {
    "a text for the decay": (attribute("weight_decay", {"value": "0.1"}), NUMBER),
    "a variable for the decay": (attribute("weight_decay", {"variable": 0}), NUMBER),
    "an op for the decay": (attribute("weight_decay", {"op": "exp"}), NUMBER),
    "a text for averages": (attribute("use_ema", {"value": "no"}), NUMBER),
    "a text for clipping": (attribute("clipnorm", {"value": "1"}), NUMBER),
    "a function for the decay": (function("weight_decay", 1), NUMBER),
    "a negative decay": (attribute("weight_decay", {"value": -1}), "must not be negative"),
    "an op for the rate": (attribute("learning_rate", {"op": "exp"}), "not a scalar variable"),
    "a text of names": (excluded({"names": "bias", "places": []}), "invalid list"),
    "a dictionary of names": (excluded({"names": {"bias": 1}, "places": []}), "invalid list"),
    "no places": (excluded({"names": []}), "invalid list"),
    "truths for places": (excluded({"names": [], "places": [True]}), "invalid list"),
    "weights as state": (of_weights, "something else"),
    "state of itself": (of_its_own_state, "something else"),
    "state twice": (twice, "the state of several|not an optimizer"),
    "the formula for settings": (function("settings", 2), "'settings' does not return"),
    "settings for the formula": (function("update", 1), "'update' does not take"),
    "settings for the rate": (function("learning_rate", 1), "'learning_rate' does not return"),
    "one row of any length": (
        lambda o, m, d: o["optimizer"].update(elementwise=True), "'update' does not take"
    ),
    "a state of lists": (in_update(state_of_lists), "."),
    "results in results": (in_update(nested_results), "."),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_lies_about_an_optimizer_are_refused(lie: str, template: Path, tmp_path: Path) -> None:
    change, told = LIES[lie]
    path = changed(template, tmp_path / "lie.h5", change)
    with pytest.raises(DamagedFile, match=told) as error:
        gt.load(path)
    assert len(str(error.value)) < 1_000


@pytest.mark.parametrize("name", ["apply_gradients", "_step_formula", "trained", "__class__"])
def test_no_file_replaces_what_an_optimizer_does(name: str, template: Path, tmp_path: Path) -> None:
    for change in (attribute(name, {"op": "exp"}), function(name, 2)):
        with pytest.raises(UnsafeFile, match=name):
            gt.load(changed(template, tmp_path / "lie.h5", change))


def test_options_are_what_a_constructor_makes_of_them(template: Path, tmp_path: Path) -> None:
    for dtype in ("float64", "float32"):
        given = {"scalar": [dtype, {"float": "0.5"}]}
        path = changed(template, tmp_path / "x.h5", attribute("weight_decay", given))
        root = gt.load(path)
        assert type(root.optimizer.weight_decay) is float
        assert np.isfinite(train(root).history["loss"][0])


# -- what takes long -------------------------------------------------------------------------------

Bomb = Callable[[Any, Any, Draft], Any]


def repeated(m: Any, record: Any, count: int) -> None:
    """Put many modules that are alike into the root."""
    first = len(m["modules"])
    m["modules"] += [copy.deepcopy(record) for _ in range(count)]
    inside = {"list": [{"module": first + i} for i in range(count)]}
    m["modules"][0]["attributes"]["many"] = inside


def optimizers(o: Any, m: Any, d: Draft) -> None:
    """Let 1,500 optimizers have one formula of 150 graphs, and 3,000 variables beside them."""
    text, first = d.json(m["functions"][2]["traces"][0]["dataset"]), len(m["variables"])
    for i in range(150):
        d.put(text, f"/functions/u{i}")
        m["functions"][2]["traces"].append({"dataset": f"/functions/u{i}", "not_sampled": "x"})
    for i in range(3_000):
        d.arrays[f"/variables/x{i}"] = np.float32(1.0)
        record = {"dataset": f"/variables/x{i}", "name": "x", "trainable": True}
        m["variables"].append({**record, "shape": [], "dtype": "float32"})
    beside = [{"variable": first + i} for i in range(3_000)]
    m["modules"][0]["attributes"]["beside"] = {"list": beside}
    none = {**o["attributes"], "velocity": {"list": []}}
    kept = {key: o[key] for key in ("name", "class", "class_name", "functions", "optimizer")}
    repeated(m, {**kept, "attributes": none, "trained": []}, 1_500)


def large(nodes: int) -> Any:
    spec = {"shape": [], "dtype": "float32"}
    steps = [
        {"op": "negative", "inputs": [i], "params": {}, "outputs": [spec]} for i in range(nodes)
    ]
    return {
        "name": "f",
        "arguments": {"tuple": [{"tuple": [{"spec": spec}]}, {"dict": {}}]},
        "results": {"output": 0},
        "graph": {
            "name": "f", "inputs": [spec], "constants": [], "nodes": steps, "outputs": [nodes],
            "updates": [],
        },
    }  # fmt: skip


def added(m: Any, d: Draft, texts: list[Any]) -> int:
    """Add a function of one argument with such traces; return its number."""
    traces = []
    for text in texts:
        path = f"/functions/added{len(d.texts)}"
        d.put(text, path)
        traces.append({"dataset": path, "not_sampled": "x"})
    parameters = [{"name": "x", "kind": "positional_only"}]
    m["functions"].append({"name": "f", "parameters": parameters, "traces": traces})
    return len(m["functions"]) - 1


def modules_of_one_function(o: Any, m: Any, d: Draft) -> None:
    number = added(m, d, [large(4_000)])
    record = {"name": "a", "class": None, "class_name": "A", "attributes": {}}
    repeated(m, {**record, "functions": {"f": number}}, 4_000)


def rules_of_many_graphs(o: Any, m: Any, d: Draft) -> None:
    weight = o["trained"][0]
    shape = m["variables"][weight]["shape"]
    texts = [large(0) for _ in range(1_001)]
    texts[-1]["graph"]["inputs"][0]["shape"] = shape  # which is that of the argument
    m["modules"][0]["constraints"] = [[weight, added(m, d, texts)]] * 10_000


BOMBS: dict[str, Bomb] = {
    "many optimizers with one formula": optimizers,
    "many modules with one large graph": modules_of_one_function,
    "many constraints with one function of many graphs": rules_of_many_graphs,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_many_modules_share_is_checked_once(bomb: str, template: Path, tmp_path: Path) -> None:
    path = changed(template, tmp_path / "bomb.h5", BOMBS[bomb])
    assert path.stat().st_size < 2**21
    start = time.thread_time()
    gt.load(path)
    assert time.thread_time() - start < seconds_of(5.0)  # it takes about one
    tracemalloc.start()
    gt.load(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 150 * 2**20


def other_trained(o: Any, m: Any, d: Draft) -> None:
    del o["trained"]


SEEN: dict[str, tuple[Callable[[Any, Any, Draft], Any], str]] = {
    "what does not decay": (excluded({"names": ["kernel"], "places": []}), "by names.*kernel"),
    "places that do not decay": (excluded({"names": [], "places": [1]}), r"by places.*\[1\]"),
    "whose state it is": (other_trained, "state is of.*model/layers/0/kernel"),
    "that it is an optimizer": (lambda o, m, d: o.pop("optimizer"), "formula for.*each variable"),
    "an option": (attribute("weight_decay", {"value": {"float": "0.5"}}), "weight_decay.*0.5"),
}


@pytest.mark.parametrize("what", SEEN)
def test_what_an_optimizer_does_is_shown(what: str, template: Path, tmp_path: Path) -> None:
    change, told = SEEN[what]
    path = changed(template, tmp_path / "other.h5", change)
    difference = gt.saving.diff(template, path)
    assert difference
    assert re.search(told, str(difference))
    shown = [str(gt.saving.inspect(x)) for x in (template, path)]
    assert sorted(bool(re.search(told, x)) for x in shown) == [False, True]


def test_showing_long_lists_takes_little(template: Path, tmp_path: Path) -> None:
    def many(o: Any, m: Any, d: Draft) -> None:
        names = ["\x1b[31m" + "k" * 1_000] * 1_000
        excluded({"names": names, "places": list(range(1_000))})(o, m, d)
        for module in m["modules"][1:]:
            module["trained"] = o["trained"]

    path = changed(template, tmp_path / "long.h5", many)
    text = str(gt.saving.inspect(path))
    assert len(text) < 10_000
    assert "\x1b" not in text
