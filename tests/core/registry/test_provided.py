"""What a plugin may provide: ops, gradients, kernels and classes."""

from __future__ import annotations

import numpy as np
import pytest
from made_plugins import cube_op, gradient, plugin, specs

import gradtape as gt
from gradtape.core.extend import NONDIFF, F, Op


def test_an_op_of_another_package(register) -> None:
    register("cubes", ops=[cube_op()])
    cube = gt.registry().op("cubes::cube")
    assert cube(2.0).item() == 8.0
    assert gradient(cube, 2.0).item() == 12.0
    assert gradient(gt.function(cube), 2.0).item() == 12.0
    assert repr(cube) == "<op cubes::cube(x)>"
    assert cube.__doc__.startswith("Return ``x * x * x``.\n\nParameters\n")
    assert cube.__name__ == "cubes::cube"
    assert str(cube.provider) == "plugin 'cubes'"
    info = gt.registry().owner("op", "cubes::cube")
    assert (info.ops, info.rules) == (["cubes::cube"], ["cubes::cube"])
    assert F["cubes::cube"](np.float64(2.0)) == 8.0


def test_rules_may_use_ones_own_ops(register) -> None:
    square = Op("own::square", "square", inputs=("x",), infer=specs, gradients={"x": NONDIFF})
    cube = cube_op("own::cube", gradients={"x": lambda g, x: 3.0 * g * F["own::square"](x)})
    register("own", ops=[square, cube])
    assert gradient(gt.registry().op("own::cube"), 2.0).item() == 12.0


def test_gradients_for_ops_of_others_by_input_and_by_function(register) -> None:
    one = Op("bare::one", lambda xp, x: x, infer=specs)
    two = Op("bare::two", lambda xp, x, y: x * y, infer=specs)
    register("bare", ops=[one, two])
    register(
        "rules",
        gradients={
            "bare::one": lambda g, x: g * x * 10.0,
            "bare::two": {"x": lambda g, y: g * y, "y": NONDIFF},
        },
    )
    assert gradient(gt.registry().op("bare::one"), 2.0).item() == 20.0
    x, y = gt.constant(2.0), gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch([x, y])
        z = gt.registry().op("bare::two")(x, y)
    dx, dy = tape.gradient(z, [x, y])
    assert dx.item() == 3.0
    assert dy is None
    assert str(one.rules_provider) == "plugin 'rules'"


def test_rules_go_with_the_plugin_that_brought_them() -> None:
    bare = Op("gone::op", lambda xp, x: x, infer=specs)
    gt.register_plugin(plugin(ops=[bare]), "gone")
    try:
        gt.register_plugin(plugin(gradients={"gone::op": lambda g: g * 2.0}), "its_rule")
        assert gradient(bare, 1.0).item() == 2.0
        gt.unregister_plugin("its_rule")
        assert gradient(bare, 1.0) is None
    finally:
        gt.unregister_plugin("gone")


def test_a_kernel_override(register) -> None:
    register("cubes", ops=[cube_op()])
    calls = []
    cube = gt.registry().op("cubes::cube")
    assert cube(2.0).item() == 8.0
    register("fast", kernels={("cubes::cube", "numpy"): lambda x: calls.append(1) or x**3})
    assert gt.registry().op("cubes::cube")(2.0).item() == 8.0
    assert calls == [1]
    gt.unregister_plugin("fast")
    cube(2.0)
    assert calls == [1]
    gt.register_plugin(plugin(), "fast")  # for the fixture to take back


def test_a_variadic_op_with_several_outputs(register) -> None:
    register(
        "many",
        ops=[
            Op(
                "many::both",
                lambda xp, *arrays, scale=1.0: [sum(arrays) * scale, arrays[0]],
                vjp=lambda gs, inputs, outputs, needed, scale: [
                    gs[0] * scale + (gs[1] if i == 0 else 0.0) if need else None
                    for i, need in enumerate(needed)
                ],
                infer=lambda *xs, scale: [specs(*xs)] * 2,
            )
        ],
    )
    both = gt.registry().op("many::both")
    x, y = gt.constant(2.0), gt.constant(3.0)
    for f in (lambda: both(x, y, y, scale=10.0), gt.function(lambda: both(x, y, y, scale=10.0))):
        total, first = f()
        assert (total.item(), first.item()) == (80.0, 2.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        total, first = both(x, y, y, scale=10.0)
    assert [g.item() for g in tape.gradient(total, [x, y])] == [10.0, 20.0]
    assert [g.item() for g in tape.gradient([total, first], [x, y])] == [11.0, 20.0]
    with pytest.raises(TypeError, match=r"many::both: argument 1: .*None"):
        both(x, None)


def test_module_classes_are_listed(register) -> None:
    class Layer(gt.Module):
        pass

    register("layers_of_mine", modules={"mine.Layer": Layer})
    assert gt.registry().modules["mine.Layer"] is Layer
