"""Save and restore is the identity, or a clear error."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.training.relations import Line, Pairs, Program, relation
from gradtape import training as tr

__all__: list[str] = []

KEYS = (
    "0",
    "1",
    "-1",
    "'0'",
    "'1'",
    "'a'",
    "'b'",
    "'a/b'",
    "'a.b'",
    "''",
    "None",
    "'None'",
    "True",
)
ODD_KEYS = ("(1, 2)", "1.5", "'é'", "' '", "b'a'", "'[0]'", "'__tuple__'", "'kind'", "np.int64(1)")
VALUES = (
    *("0", "1.5", "True", "None", "'text'", "''", "float('nan')", "-0.0", "10**20", "1 + 2j"),
    *("np.zeros(2)", "np.arange(3)", "np.float32(0.1)", "np.zeros((0, 2))", "np.array(3.0)"),
    *("np.array([True])", "np.int8(3)", "b'bytes'", "np.array(['a', 'bc'])", "float('inf')"),
    *("[]", "{}", "()", "'é'", "gt.constant([1.0, 2.0])", "range(3)", "{1, 2}", "frozenset({1})"),
)
VARIABLES = ("gt.Variable(SEED.5)", "gt.Variable([SEED.0, 2.0])", "gt.Variable(SEED)")
CONTAINERS = ("[ITEMS]", "(ITEMS,)", "{PAIRS}", "{PAIRS}", "{PAIRS}")
ODD_CONTAINERS = (
    *("collections.deque([ITEMS])", "types.SimpleNamespace(NAMED)", "Held(ITEMS)"),
    *("collections.OrderedDict({PAIRS})", "frozenset([LEAF])", "Pair(ITEM, ITEM)"),
)


def _nested(rng: random.Random, depth: int, leaf: Callable[[], str], odd: float) -> str:
    """Return the expression of a nested value."""
    if depth <= 0 or rng.random() < 0.25:
        return leaf()
    text = rng.choice(ODD_CONTAINERS if rng.random() < odd else CONTAINERS)
    items = [_nested(rng, depth - 1, leaf, odd) for _ in range(rng.randint(1, 3))]
    keys = [rng.choice(ODD_KEYS if rng.random() < odd else KEYS) for _ in items]
    pairs = [f"{key}: {item}" for key, item in zip(keys, items, strict=True)]
    hashable = "gt.Variable(9.25)" if "gt.Variable" in str(items) else "'text'"
    named = [f"n{i}={item}" for i, item in enumerate(items)]
    texts = {"ITEMS": items, "PAIRS": pairs, "NAMED": named, "ITEM": items[:1], "LEAF": [hashable]}
    for name, found in texts.items():
        text = text.replace(name, ", ".join(found))
    return text


def of_values(rng: random.Random) -> Program:
    """Draw a dictionary of plain values."""
    odd = rng.choice([0.0, 0.0, 0.15])
    items = tuple(
        f"{rng.choice(KEYS)}: {_nested(rng, 2, lambda: rng.choice(VALUES), odd)}"
        for _ in range(rng.randint(1, 3))
    )
    return Program({"state": Line("lambda: {ITEMS}", items)})


def of_variables(rng: random.Random) -> Program:
    """Draw a dictionary in which there are variables, and modules with variables."""
    odd = rng.choice([0.0, 0.0, 0.2])

    def leaf() -> str:
        text = rng.choice([*VARIABLES, *VARIABLES, *VALUES, "Scale()"])
        return text.replace("SEED", str(rng.randint(1, 9)))

    items: tuple[str, ...] = ()
    while "Variable" not in str(items):
        names = ("a", "b", "weight")[: rng.randint(1, 3)]
        items = tuple(f"{name}={_nested(rng, 2, leaf, odd)}" for name in names)
    return Program({"state": Line("lambda: dict(ITEMS)", items)})


class _Holder:
    """An object with a state that a checkpoint keeps."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def state_dict(self) -> Any:
        """Return the state."""
        return self.state

    def load_state_dict(self, state: Any) -> None:
        """Set the state."""
        self.state = state


@relation("identity", of_values, exact=True)
def checkpoint(p: Any) -> Pairs:
    """``Checkpoint`` of an object with ``state_dict``."""
    tr.Checkpoint(held=_Holder(p.state())).save("c.h5")
    other = _Holder(None)
    tr.Checkpoint(held=other).restore("c.h5")
    yield "state", other.state, _plain(p.state())


@relation("identity", of_values, exact=True)
def attributes(p: Any) -> Pairs:
    """Attributes of a module, in ``gt.save`` and in copies."""
    module: Any = gt.Module()
    module.held = p.state()
    yield "copied", copy.deepcopy(module).held, p.state()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        gt.save(module, "m.h5", functions=False)
    if not said:  # a warning names what a file cannot hold
        yield "loaded", gt.load("m.h5").held, p.state()


@relation("identity", of_values, exact=True)
def callback(p: Any) -> Pairs:
    """The state of a callback of an interrupted run."""

    class Kept(tr.Callback):
        def on_epoch_end(self, epoch: int, logs: Any) -> None:
            if epoch == 0:
                self.held = p.state()

        def state_dict(self) -> Any:
            return {"held": getattr(self, "held", None)}

        def load_state_dict(self, state: Any) -> None:
            self.held = state["held"]

    found = []
    for epochs in (1, 2):
        found.append(Kept())
        data = (np.ones((2, 2), "float32"), np.ones((2, 1), "float32"))
        tr.fit(
            gt.layers.Dense(1),
            data,
            loss="mse",
            epochs=epochs,
            verbose=0,
            compile=False,
            callbacks=found[-1:],
            checkpoint="run.ck",
            resume=True,
        )
    yield "held", found[1].held, _plain(p.state())


def _plain(value: Any) -> Any:
    """Return a value with plain dictionaries: checkpoints keep an ``OrderedDict`` as one."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def _module(p: Any, zero: bool = False) -> Any:
    module: Any = gt.Module()
    for name, value in p.state().items():
        setattr(module, name, value)
    if zero:
        for variable in _variables_in(vars(module)):
            variable.assign(variable.numpy() * 0)
    return module


def _variables_in(value: Any, seen: set[int] | None = None) -> list[Any]:
    """Return all variables that can be reached, in whatever holds them."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, (str, bytes, int, float, np.ndarray, gt.Tensor)):
        return []
    seen.add(id(value))
    if isinstance(value, gt.Variable):
        return [value]
    inside: Any = value.values() if isinstance(value, dict) else ()
    if isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque":
        inside = value
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        inside = vars(value).values()
    return [variable for part in inside for variable in _variables_in(part, seen)]


def _numbers(module: Any) -> list[Any]:
    return sorted((v.numpy().tolist() for v in _variables_in(vars(module))), key=str)


def _in_and_out(save: Callable[[Any], Any], load: Callable[[Any], Any]) -> Callable[[Any], Pairs]:
    def check(p: Any) -> Pairs:
        module = _module(p)
        want = _numbers(module)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            if want:
                save(module)
        if want and not said:  # a warning names what modules do not find
            yield "variables", _numbers(load(_module(p, zero=True))), want

    return check


def _restored(module: Any) -> Any:
    tr.Checkpoint(module=module).restore("c.h5")
    return module


def _read(name: str, **options: Any) -> Callable[[Any], Any]:
    def load(module: Any) -> Any:
        module.load_weights(name, **options)
        return module

    return load


FILES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "variables": (lambda m: tr.Checkpoint(module=m).save("c.h5"), _restored),
    "weights": (lambda m: m.save_weights("w.h5"), _read("w.h5")),
    "safetensors": (lambda m: m.save_weights("w.safetensors"), _read("w.safetensors")),
    "pytorch": (
        lambda m: m.save_weights("p.safetensors", layout="pytorch"),
        _read("p.safetensors", layout="pytorch"),
    ),
    "model": (lambda m: gt.save(m, "m.h5", functions=False), lambda m: gt.load("m.h5")),
}
for _name, (_save, _load) in FILES.items():
    relation("identity", of_variables, name=_name)(_in_and_out(_save, _load))
