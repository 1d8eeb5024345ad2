"""Variables where modules do not find them are named before they are lost."""

from __future__ import annotations

import collections
import types
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Activation, Dense
from gradtape.training import SGD, Checkpoint, CheckpointManager, fit


@dataclass
class Parts:
    head: Any


class Plain:
    def __init__(self, **held: Any) -> None:
        vars(self).update(held)


class Unbound:
    """What a proxy is before there is anything behind it."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return object.__getattribute__(self, name)
        raise RuntimeError("nothing is bound")


class Slotted:
    __slots__ = ("head",)

    def __init__(self, head: Any) -> None:
        self.head = head


class Net(gt.Module):
    def __init__(self, **held: Any) -> None:
        super().__init__("net")
        self.out = Dense(1)
        vars(self).update(held)

    def __call__(self, x: Any, training: bool = False) -> Any:
        return self.out(x)


def actions(net: gt.Module, folder: Path) -> dict[str, Any]:
    data = np.ones((4, 2), "f4"), np.ones((4, 1), "f4")
    checkpoint = Checkpoint(net=net)
    return {
        "save_weights": lambda: net.save_weights(folder / "w.h5"),
        "save_weights ": lambda: net.save_weights(folder / "w.safetensors"),
        "fit": lambda: fit(net, data, loss="mse", epochs=2, verbose=0, checkpoint=folder / "f.h5"),
        "Checkpoint": lambda: checkpoint.save(folder / "c.h5"),
        "Checkpoint ": lambda: CheckpointManager(Checkpoint(net=net), folder).save(),
    }


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (lambda v: collections.deque([v]), "[0]"),
        (lambda v: {v}, "{...}"),
        (lambda v: frozenset([v]), "{...}"),
        (lambda v: types.SimpleNamespace(a=v), ".a"),
        (lambda v: Parts({"x": v}), ".head['x']"),
        (lambda v: Plain(inner=Plain(w=[v])), ".inner.w[0]"),
        (Slotted, ".head"),
        (lambda v: [1, {"a": Plain(w=v)}], "[1]['a'].w"),
        (lambda v: Plain(head=Dense(1)), ".head"),
    ],
)
@pytest.mark.parametrize("action", list(actions(Net(), Path())))
def test_hidden_variables_are_named(value: Any, place: str, action: str, tmp_path: Path) -> None:
    net = Net(part=value(gt.Variable(1.0)))
    net(np.ones((1, 2), "f4"))
    with pytest.warns(UserWarning, match="modules find variables in") as caught:
        actions(net, tmp_path)[action]()
    (text,) = [str(item.message) for item in caught]
    assert text.startswith(f"{action.strip()}: net.part{place}: modules find variables in")


def test_those_of_modules_inside_have_their_paths(tmp_path: Path) -> None:
    outer = Net(blocks=[Net(part={gt.Variable(1.0)}), Net(part=Plain(v=gt.Variable(2.0)))])
    outer(np.ones((1, 2), "f4"))
    for block in outer.blocks:
        block(np.ones((1, 2), "f4"))
    with pytest.warns(UserWarning, match=r"net\.blocks\.0\.part{...}, net\.blocks\.1\.part\.v: "):
        outer.save_weights(tmp_path / "w.h5")


def test_what_is_found_or_is_no_part_is_not_named(tmp_path: Path) -> None:
    shared, other, frozen = gt.Variable(1.0, trainable=False), Net(), Dense(1)
    other(np.ones((1, 2), "f4"))
    frozen(np.ones((1, 2), "f4"))
    frozen.trainable = False
    net = Net(
        shared=shared,
        same=Plain(v=shared),
        config=types.SimpleNamespace(sizes=[1, 2], names={"a"}),
        behind=lambda: other,
        teacher=Plain(model=frozen),
        activation=Plain(f=Activation("relu")),
        step=Plain(f=gt.function(lambda x: x * other.out.kernel)),
        optimizer=Plain(of=SGD(0.1)),
        words={str(i): i for i in range(20_000)},
        app=Unbound(),
    )
    net.owner = Plain(first=net, second=other)
    net.out.owner = net.owner
    net(np.ones((1, 2), "f4"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for action in actions(net, tmp_path).values():
            action()
