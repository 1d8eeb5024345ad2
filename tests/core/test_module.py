"""``Module``: what it tracks, in which order, under which names, and its summary."""

from __future__ import annotations

import copy

import pytest

import gradtape as gt


class Leaf(gt.Module):
    def __init__(self, n: int = 1, name: str | None = None) -> None:
        super().__init__(name)
        self.w = gt.Variable([1.0] * n, name=f"w{n}")

    def __call__(self, x):
        return x * self.w


class Tree(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.nested = {
            "b": [Leaf(2), (Leaf(3), {"deep": Leaf(4)})],
            "a": gt.Variable(0.0, name="a"),
        }
        self.pair = (Leaf(5), gt.Variable(1, name="count"))
        self.fixed = gt.Variable(0.0, trainable=False, name="fixed")
        self.first = Leaf(6)
        self.other = "text"


def test_variables_and_submodules_in_lists_tuples_and_dicts() -> None:
    tree = Tree()
    assert [v.name for v in tree.variables] == ["fixed", "a", "count", "w6", "w2", "w3", "w4", "w5"]
    assert [v.name for v in tree.trainable_variables] == ["a", "w6", "w2", "w3", "w4", "w5"]
    assert [m.w.name for m in tree.submodules] == ["w6", "w2", "w3", "w4", "w5"]
    assert list(tree.named_variables) == [
        "fixed",
        "nested/a",
        "pair/1",
        "first/w",
        "nested/b/0/w",
        "nested/b/1/0/w",
        "nested/b/1/1/deep/w",
        "pair/0/w",
    ]


def test_what_is_added_later_is_tracked_and_what_is_removed_is_not() -> None:
    tree = Tree()
    tree.nested["b"].append(Leaf(7))
    assert "w7" in [v.name for v in tree.variables]
    del tree.nested
    assert [v.name for v in tree.variables] == ["fixed", "count", "w6", "w5"]


def test_shared_and_cyclic_submodules_count_once() -> None:
    a, b = Leaf(1), Leaf(2)
    a.child, b.child = b, a
    a.me = a
    a.again = [b, b, a]
    loop = [b]
    loop.append(loop)
    a.loop = loop
    assert [v.name for v in a.variables] == ["w1", "w2"]
    assert a.submodules == (b,)
    assert list(a.named_variables) == ["w", "again/0/w"]
    b.w = a.w
    assert len(a.variables) == 1


def test_names() -> None:
    class HTTPServer2(gt.Module):
        pass

    class _Hidden(gt.Module):
        pass

    class NoInit(gt.Module):
        def __init__(self) -> None:
            pass

    assert HTTPServer2().name == "http_server2"
    assert _Hidden().name == "hidden"
    assert NoInit().name == "no_init"
    assert Leaf(name="my_name").name == "my_name"
    for bad in ("a b", "1a", "", "a-b"):
        with pytest.raises(ValueError, match="identifier"):
            Leaf(name=bad)
    assert repr(Leaf()) == "<Leaf 'leaf': 1 variables>"


def test_summary() -> None:
    tree = Tree()
    tree.first(gt.constant([[1.0] * 6] * 3))
    text = tree.summary()
    lines = text.splitlines()
    assert lines[0] == "Tree 'tree'"
    assert lines[1].split() == ["Layer", "Output", "shape", "Parameters"]
    assert any(line.split() == ["first", "(Leaf)", "(?,", "6)", "6"] for line in lines)
    assert any(line.split() == ["nested/b/0", "(Leaf)", "-", "2"] for line in lines)
    assert lines[-1] == "Parameters: 23 (21 trainable)"
    assert "leaf (Leaf)" in Leaf().summary()
    assert "Parameters: 0 (0 trainable)" in gt.Module().summary()


def test_calls_are_noted_once_per_signature() -> None:
    leaf = Leaf(2)
    for _ in range(3):
        leaf(gt.constant([1.0, 2.0]))
    leaf(gt.constant([[1.0, 2.0]]))
    assert [args[0].shape for args, _ in leaf.call_signatures()] == [(2,), (1, 2)]


def test_functions_are_found() -> None:
    class Base(gt.Module):
        @gt.function
        def f(self, x):
            return x

        @gt.function
        def g(self, x):
            return x * 2.0

    class Child(Base):
        def g(self, x):
            return x * 3.0

    child = Child()
    child.h = gt.function(lambda x: x * 4.0)
    assert sorted(child.functions()) == ["f", "h"]
    assert child.functions()["h"](gt.constant(1.0)).item() == 4.0


def test_a_call_that_is_a_function() -> None:
    class Model(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable(2.0)

        @gt.function
        def __call__(self, x):
            return x * self.w

    model = Model()
    assert model(gt.constant(3.0)).item() == 6.0
    with gt.GradientTape() as tape:
        y = model(gt.constant(3.0))
    assert tape.gradient(y, model.w).item() == 3.0
    assert "__call__" in model.functions()


def test_a_deep_copy_has_variables_of_its_own() -> None:
    tree = Tree()
    tree.alias = tree.first
    twin = copy.deepcopy(tree)
    assert twin.alias is twin.first
    assert not {v.id for v in twin.variables} & {v.id for v in tree.variables}
    twin.first.w.assign([5.0] * 6)
    assert tree.first.w.numpy()[0] == 1.0


def test_moving_is_all_or_nothing() -> None:
    tree = Tree()
    assert tree.to("numpy") is tree
    assert tree.variables[0].value.device == "numpy:cpu"
    with pytest.raises(LookupError, match="nowhere"):
        tree.to("nowhere")
