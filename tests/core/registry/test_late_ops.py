"""Ops that a plugin declares by their names, and makes when one of them is first needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gradtape as gt
from gradtape.errors import PluginError, UnknownOp
from gradtape.plugin import Op, ops
from gradtape.plugins.ops import LATE, OPS, gradtape_ops


def op(name: str, factor: float = 2.0, **settings) -> Op:
    return Op(name, lambda xp, x: factor * x, batch="elementwise", **settings)


class Family:
    """A function that makes ops, and counts its calls."""

    def __init__(self, *made: Op) -> None:
        self.made, self.calls = made, 0

    def __call__(self) -> list[Op]:
        self.calls += 1
        return list(self.made)


NAMES = ("acme::one", "acme::two")


@pytest.fixture
def family() -> Family:
    return Family(op("acme::two"), op("acme::one", 1.0))


def test_ops_are_made_when_one_is_looked_up(register, family):
    register("acme", late_ops={NAMES: family})
    assert ops["exp"].name == "exp"
    assert not family.calls
    assert ops["acme::one"](3.0).item() == 3.0
    assert ops["acme::two"](3.0).item() == 6.0
    assert family.calls == 1
    assert gt.registry().owner("op", "acme::two").name == "acme"


@pytest.mark.parametrize(
    "all_of",
    [
        lambda known: known.ops,
        lambda known: ops,
        lambda known: [name for info in known.plugins for name in info.ops],
    ],
)
def test_who_lists_ops_has_all(register, family, all_of):
    register("acme", late_ops={NAMES: family})
    found = [name for name in all_of(gt.registry()) if name.startswith("acme")]
    assert sorted(found) == list(NAMES)
    assert len(ops) == len(gt.registry().ops)


def test_the_order_does_not_depend_on_what_was_needed_first(register, family):
    before = list(gt.registry().ops)
    gt.order_plugins([])  # a new registry
    ops["sigmoid"], ops["cond"], ops["matmul"]
    assert list(gt.registry().ops) == before


def test_rules_and_kernels_of_others_find_declared_ops(register):
    made = Family(op("acme::one", gradients={"x": lambda g: g}))
    register("acme", late_ops={("acme::one",): made})
    register("kernels", kernels={("acme::one", "numpy"): lambda x: 5.0 * x})
    assert not made.calls  # the name suffices
    register("rules", gradients={"acme::one": {"x": lambda g: g * 7.0}})
    assert made.calls
    assert ops["acme::one"](1.0).item() == 5.0
    assert gt.grad(ops["acme::one"])(1.0).item() == 7.0


def test_two_plugins_that_declare_an_op_clash_when_it_is_needed(register, family):
    register("acme", late_ops={("acme::one",): Family(op("acme::one"))})
    register("other", late_ops={NAMES: family})
    with pytest.raises(PluginError, match="both provide the op 'acme::one'"):
        gt.registry().op("acme::one")
    gt.order_plugins(["other"])
    try:
        assert ops["acme::one"](3.0).item() == 3.0
    finally:
        gt.order_plugins([])


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ((*NAMES, "acme::three"), "declares the ops 'acme::three', which their function does not"),
        (("acme::one",), "does not declare the ops 'acme::two'"),
    ],
)
def test_other_names_than_those_declared_are_refused(register, family, declared, message):
    register("acme", late_ops={declared: family})
    with pytest.raises(PluginError, match=message):
        gt.registry().op("acme::one")
    with pytest.warns(RuntimeWarning, match=message):  # and must not hide what others have
        assert "matmul" in gt.registry().ops
    with pytest.raises(UnknownOp, match="not in use: plugin 'acme'"):
        gt.registry().op("acme::one")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("one",), "bare op names are gradtape's own"),
        ((), "a prefix, or a tuple of ops' names"),
        ((1,), "a prefix, or a tuple of ops' names"),
    ],
)
def test_wrong_declarations_are_refused(register, names, message):
    with pytest.raises(PluginError, match=message):
        register("acme", late_ops={names: list})


def test_an_error_names_the_plugin(register):
    def fail() -> list[Op]:
        raise ImportError("no libacme")

    register("acme", late_ops={NAMES: fail})
    with pytest.raises(PluginError, match=r"'acme': its op 'acme::one' cannot be loaded.*libacme"):
        gt.registry().op("acme::one")


def test_kernels_may_be_named_by_their_place(register):
    register(
        "acme",
        ops=[op("acme::one"), op("acme::two"), op("acme::three")],
        kernels={
            ("acme::one", "numpy"): "numpy:negative",
            ("acme::two", "numpy"): "numpy:pi",
            ("acme::three", "numpy"): "numpy:lacks",
        },
    )
    assert ops["acme::one"](3.0).item() == -3.0
    with pytest.raises(PluginError, match=r"'numpy:pi', which is a float, not a function"):
        ops["acme::two"](3.0)
    with pytest.raises(PluginError, match=r"'acme'.* cannot be imported: AttributeError"):
        ops["acme::three"](3.0)
    with pytest.raises(PluginError, match="instead of a function"):
        register("other", kernels={("acme::one", "numpy"): "no place"})


def test_classes_may_be_named_by_their_place(register):
    register("acme", modules={"acme.Model": "gradtape:Module", "acme.Wrong": "gradtape:constant"})
    with pytest.warns(RuntimeWarning, match="'gradtape:constant', which is a function, not a cl"):
        known = gt.registry().modules
    assert known["acme.Model"] is gt.Module
    assert "acme.Wrong" not in known


def test_the_first_op_imports_no_late_family() -> None:
    code = (
        "import sys, gradtape as gt\n"
        "gt.constant([1.0, 2.0]) * 2\n"
        f"print([x for x in {list(LATE)!r} if f'gradtape.plugins.ops.{{x}}' in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert run.stdout.strip() == "[]"


def test_every_op_of_the_package_is_registered() -> None:
    known = gt.registry().ops
    late = [name for names in LATE.values() for name in names]
    assert sorted([op.name for op in gradtape_ops()] + late) == sorted(op.name for op in OPS)
    assert all(known[op.name] is op for op in OPS)
