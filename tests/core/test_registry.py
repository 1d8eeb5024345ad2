"""Plugins: by hand and by entry point, what they may provide, and what happens when they clash."""

from __future__ import annotations

import importlib.metadata
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import NONDIFF, Backend, Engine, F, Op, hookimpl
from gradtape.errors import BackendMismatch, PluginError, UnknownOp


def specs(*xs):
    return xs[0].shape, xs[0].dtype


def cube_op(name: str = "cubes::cube", **changes) -> Op:
    record = {
        "gradients": {"x": lambda g, x: 3.0 * g * x * x},
        "infer": specs,
        "doc": "Return ``x * x * x``.",
        **changes,
    }
    return Op(name, lambda xp, x: x * x * x, **record)


def plugin(**hooks):
    """Return a plugin whose hooks return the given values."""
    made = types.SimpleNamespace()
    for name, value in hooks.items():

        def hook(value=value):
            if isinstance(value, Exception):
                raise value
            return value

        hook.__name__ = f"gradtape_{name}"
        setattr(made, hook.__name__, hookimpl(hook))
    return made


@pytest.fixture
def register():
    """Register plugins for the length of a test."""
    names = []

    def add(name: str, **hooks):
        gt.register_plugin(plugin(**hooks), name)
        names.append(name)

    yield add
    for name in reversed(names):
        gt.unregister_plugin(name)


def gradient(f, at):
    x = gt.constant(at)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


# -- what a plugin provides ------------------------------------------------------------------------


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


# -- malformed plugins -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cube_op(gradients={"y": NONDIFF}), r"unknown: \['y'\], missing: \['x'\]"),
        (lambda: cube_op(gradients={"x": lambda g, z: g}), "has a parameter 'z'"),
        (lambda: Op("m::a", "sin"), "pass their names as inputs="),
        (lambda: Op("m::a", lambda xp, x, **kw: x), r"\*\*kw"),
        (lambda: Op("m::a", lambda xp, x, n=2: x), "'n' has a default but is positional"),
    ],
)
def test_ops_that_cannot_be(make, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        make()


def test_things_that_are_no_ops_or_for_no_op() -> None:
    for hooks, message in [
        ({"ops": ["text"]}, "gradtape_ops returned 'text' in the list instead of ops"),
        ({"ops": None}, r"gradtape_ops returned None \(is a return missing\?\) instead of a list"),
        ({"ops": cube_op()}, r"returned <op cubes::cube\(x\)> instead of a list of ops"),
        ({"ops": {"cube": cube_op()}}, "returned {'cube': .* instead of a list of ops"),
        ({"backends": [Backend]}, "<class .*Backend'> in the list instead of backends"),
        ({"backends": Backend()}, "returned .*Backend object .* instead of a list of backends"),
        ({"backends": [Backend()]}, "needs an attribute 'name'"),
        (
            {"backends": [type("B", (Backend,), {"name": "b"})()]},
            "'b' needs .* 'array_module'",
        ),
        ({"kernels": {"sin": len}}, r"'sin' as a key instead of \(op name, backend name\)"),
        ({"kernels": {("sin", "numpy"): 3}}, r"3 for \('sin', 'numpy'\) instead of a function"),
        ({"kernels": [len]}, r"instead of a mapping from \(op name, backend name\)"),
        ({"gradients": [len]}, "gradtape_gradients returned .* instead of a mapping from names"),
        ({"gradients": {"sin": None}}, "None for 'sin' instead of a rule"),
        ({"modules": [gt.Module]}, "gradtape_modules returned .* instead of a mapping from names"),
        ({"modules": {"m.Mine": gt.Module()}}, "for 'm.Mine' instead of a class"),
        ({"modules": {3: gt.Module}}, "3 as a key instead of a name"),
        ({"executors": {"mine": "plain"}}, "'plain' for 'mine' instead of a function of a graph"),
        (
            {"collectives": Engine()},
            "gradtape_collectives returned .* instead of a list of engines",
        ),
        ({"collectives": [Engine]}, "class .*Engine'> in the list instead of engines"),
        ({"collectives": [Engine()]}, "needs an attribute 'name'"),
        ({"collectives": [type("E", (Engine,), {"name": "auto"})()]}, "cannot be called 'auto'"),
        ({"kernels": {("sinn", "numpy"): len}}, "which is unknown; near names: .*sin"),
        ({"kernels": {("no_such_op", "numpy"): len}}, "kernel for the op 'no_such_op'"),
        ({"gradients": {"no_such_op": len}}, "rule for the op 'no_such_op'"),
        ({"ops": ZeroDivisionError("oh")}, "ZeroDivisionError: oh"),
    ]:
        with pytest.raises(PluginError, match=message):
            gt.register_plugin(plugin(**hooks), "malformed")
    gt.registry()  # nothing of it stayed


def test_a_plugin_is_merged_whole_or_not_at_all() -> None:
    hooks = {"ops": [cube_op("half::cube")], "kernels": {("no_such_op", "numpy"): len}}
    with pytest.raises(PluginError):
        gt.register_plugin(plugin(**hooks), "half")
    with pytest.raises(UnknownOp):
        gt.registry().op("half::cube")


def test_what_is_not_in_use_left_nothing_behind(entry_points) -> None:
    entry_points(half=plugin(ops=[cube_op("half::cube")], gradients={"floor": lambda g, z: g}))
    with pytest.warns(RuntimeWarning, match=r"plugin 'half'.*has a parameter 'z'"):
        registry = gt.registry()
    assert "half::cube" not in registry.ops
    info = next(info for info in registry.plugins if info.name == "half")
    assert not info.ops


def test_a_plugin_provides_each_thing_once() -> None:
    with pytest.raises(PluginError, match="plugin 'double' provides the op 'cubes::cube' twice"):
        gt.register_plugin(plugin(ops=[cube_op(), cube_op()]), "double")


def test_a_plugin_that_computes_in_a_hook_is_told_so() -> None:
    class Early:
        @hookimpl
        def gradtape_ops(self):
            return [gt.constant(1.0)]

    with pytest.raises(PluginError, match=r"plugin 'early'.*test_registry\.py.*still being found"):
        gt.register_plugin(Early(), "early")
    assert gt.sin(0.0).item() == 0.0


def test_a_problem_is_told_of_the_plugin_registered_by_hand() -> None:
    with pytest.raises(PluginError, match="'text' in the list"):
        gt.register_plugin(plugin(ops=["text"]), "layers")  # an installed one is called so too
    with pytest.raises(PluginError, match="no plugin called 'layers'"):
        gt.unregister_plugin("layers")


def hook(name: str = "gradtape_ops", mark: bool = True):
    """Return a function of a name, which is a hook if it is marked."""

    def ops():
        return []

    ops.__name__ = ops.__qualname__ = name
    return hookimpl(ops) if mark else ops


def of_form(form: str, name: str, function):
    """Return a plugin with a function: a module, an object, a class, or a function itself."""
    if form == "module":
        made = types.ModuleType("hooks_of_ours")
        setattr(made, name, function)
        return made
    made = type("Plugin", (), {name: staticmethod(function)})
    return made if form == "class" else made()


@pytest.mark.parametrize("form", ["module", "object", "class"])
@pytest.mark.parametrize(
    ("name", "marked", "message"),
    [
        ("gradtape_ops", False, r"gradtape_ops .*test_registry\.py:\d+\) is not marked"),
        ("gradtape_executors", False, "gradtape_executors .* is not marked as a hook: write @"),
        ("gradtape_op", False, "neither a hook nor marked as one; near names: gradtape_ops"),
        ("gradtape_kernal", False, "near names: gradtape_kernels"),
        ("gradetape_backends", False, "near names: gradtape_backends"),
        ("GradTape_Modules", False, "near names: gradtape_modules"),
        ("gradtape_opps", True, "gradtape_opps .* is marked .*; near names: gradtape_ops"),
        (
            "gradients",
            True,
            "gradients .* is marked .*, but is not a hook; near names",
        ),
        (
            "my_very_own",
            True,
            "my_very_own .* is marked .*, but is not a hook; there are",
        ),
    ],
)
def test_a_hook_without_its_mark_or_misspelt_is_told(form, name, marked, message: str) -> None:
    with pytest.raises(PluginError, match=rf"^plugin 'wrong': .*{message}"):
        gt.register_plugin(of_form(form, name, hook(name, marked)), "wrong")


def test_a_hook_that_could_not_be_called_is_told() -> None:
    class Wrong:
        @hookimpl
        def gradtape_ops(self):
            return []

    with pytest.raises(PluginError, match=r"Wrong\.gradtape_ops .* register an instance"):
        gt.register_plugin(Wrong, "wrong")
    gt.register_plugin(Wrong(), "right")
    gt.unregister_plugin("right")
    with pytest.raises(PluginError, match=r"takes arguments \(config\)"):
        gt.register_plugin(types.SimpleNamespace(gradtape_ops=hookimpl(lambda config: [])), "wrong")
    with pytest.raises(PluginError, match="gradtape_ops is a list; make it a function that"):
        gt.register_plugin(types.SimpleNamespace(gradtape_ops=[cube_op()]), "wrong")
    with pytest.raises(PluginError, match="is a function; a plugin is a module or an object"):
        gt.register_plugin(hook(), "wrong")


@pytest.mark.parametrize("form", ["module", "object", "class"])
def test_other_functions_of_a_plugin_are_its_own(form) -> None:
    for name in ("helper", "graduate", "gradtape_version", "gradient"):
        gt.register_plugin(of_form(form, name, lambda: 1), "right")
        gt.unregister_plugin("right")


def test_a_hook_of_an_installed_plugin_that_lacks_its_mark_is_warned_of(entry_points) -> None:
    entry_points(unmarked=types.SimpleNamespace(gradtape_ops=lambda: [cube_op()]))
    with pytest.warns(RuntimeWarning, match=r"not in use: plugin 'unmarked': .* is not marked"):
        assert "cubes::cube" not in gt.registry().ops


def test_kernels_for_a_backend_that_is_misspelt_are_told(entry_points) -> None:
    entry_points(
        quick=plugin(kernels={("sin", "nunpy"): np.sin}),
        elsewhere=plugin(kernels={("sin", "of_a_plugin_left_out"): np.sin}),
    )
    with pytest.warns(RuntimeWarning, match="'quick' has kernels .*'nunpy'.*names: numpy") as told:
        gt.registry()
    assert len(told) == 1


# -- clashes ---------------------------------------------------------------------------------------


def test_two_providers_of_one_op_are_named_with_the_way_out(register) -> None:
    register("first", ops=[cube_op()])
    with pytest.raises(PluginError) as caught:
        gt.register_plugin(plugin(ops=[cube_op()]), "second")
    for part in (
        "'first'",
        "'second'",
        "cubes::cube",
        "GRADTAPE_DISABLE_PLUGINS",
        "disable_plugin",
    ):
        assert part in str(caught.value)
    assert gt.registry().op("cubes::cube")(2.0).item() == 8.0  # the first is unharmed


@pytest.mark.parametrize("kind", ["kernels", "gradients", "lowerings", "names"])
def test_of_two_third_parties_neither_wins_unless_an_order_is_set(register, kind) -> None:
    made = [object(), object()] if kind == "names" else [lambda x: x, lambda x: x]
    key: Any = {"kernels": ("sin", "numpy"), "lowerings": ("sin", "acme")}.get(kind, "sin")

    def hooks(item):
        return {kind: {"activation": {"acme::act": item}} if kind == "names" else {key: item}}

    register("one", **hooks(made[0]))
    with pytest.raises(PluginError, match=r"'one' and plugin 'two' both provide .*ORDER=two"):
        gt.register_plugin(plugin(**hooks(made[1])), "two")
    gt.order_plugins(["one"])
    try:
        register("two", **hooks(made[1]))
        found = gt.registry()
        table = {"gradients": "rule"}.get(kind, kind.removesuffix("s"))
        name = ("activation", "acme::act") if kind == "names" else key
        assert [x.info.name for x in found.candidates(table, name)][:2] == ["one", "two"]
        assert found.owner(table, name).name == "one"
        gt.order_plugins(["two"])
        assert gt.registry().owner(table, name).name == "two"
    finally:
        gt.order_plugins([])
    with pytest.raises(PluginError, match="neither takes precedence"):
        gt.registry().refuse_clash(table, name)


def test_a_clash_of_kernels_harms_only_the_op_on_that_backend(entry_points) -> None:
    entry_points(
        one=plugin(kernels={("sin", "numpy"): np.sin}),
        two=plugin(kernels={("sin", "numpy"): np.sin, ("cos", "numpy"): lambda x: x + 7}),
    )
    with pytest.raises(PluginError, match="both provide the kernel"):
        gt.sin(1.0)
    assert gt.cos(1.0).item() == 8.0  # what does not clash wins over gradtape's own kernel
    assert gt.tan(0.0).item() == 0.0


def test_a_third_partys_kernel_and_gradient_win_over_gradtapes_own(register) -> None:
    calls = []

    def product(x, y):
        calls.append(x.shape)
        return x @ y

    register("fast", kernels={("matmul", "numpy"): product}, gradients={"sin": lambda g, x: g * 5})
    a = gt.ones((2, 2))
    assert gt.matmul(a, a).tolist() == [[2, 2], [2, 2]]
    assert gt.function(gt.matmul)(a, a).tolist() == [[2, 2], [2, 2]]
    assert len(calls) == 2
    assert gradient(gt.sin, 1.0).item() == 5.0
    gt.unregister_plugin("fast")
    gt.matmul(a, a)
    assert gradient(gt.sin, 0.0).item() == 1.0
    assert len(calls) == 2
    gt.register_plugin(plugin(), "fast")  # for the fixture to take back


@pytest.mark.parametrize("rank", ["tryfirst", "trylast"])
def test_a_hook_says_whether_it_wins(rank: str) -> None:
    def of(value, **marks):
        made = types.SimpleNamespace()
        made.gradtape_kernels = hookimpl(**marks)(
            lambda: {("sin", "numpy"): lambda x: x * 0 + value}
        )
        return made

    gt.register_plugin(of(1), "usual")
    try:
        gt.register_plugin(of(2, **{rank: True}), "wishful")
        try:
            assert gt.sin(0.5).item() == (2 if rank == "tryfirst" else 1)
        finally:
            gt.unregister_plugin("wishful")
    finally:
        gt.unregister_plugin("usual")
    with pytest.raises(PluginError, match="both tryfirst and trylast"):
        hookimpl(tryfirst=True, trylast=True)


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ({"ops": [Op("sin", "sin", inputs=("x",), infer=specs)]}, "bare op names are gradtape's"),
        ({"ops": [cube_op("gradtape::cube")]}, "has gradtape's name in front"),
        ({"modules": {"layers.Mine": gt.Module}}, r"cannot be called 'layers.Mine'.*'clashing.Mi"),
        ({"modules": {"Mine": gt.Module}}, "cannot be called 'Mine': bare names"),
        ({"names": {"activation": {"mine": abs}}}, "activation cannot be called 'mine'"),
        ({"names": {"activatoin": {"a::mine": abs}}}, "'activatoin'; near names: activation"),
    ],
)
def test_names_of_gradtape_are_reserved(hooks, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        gt.register_plugin(plugin(**hooks), "clashing")


def test_hooks_of_another_version_are_notes(register) -> None:
    register("newer", ops=[cube_op()], future_thing=[])
    assert gt.registry().op("cubes::cube")(2.0).item() == 8.0
    info = next(info for info in gt.registry().plugins if info.name == "newer")
    assert "gradtape_future_thing, which is not a hook of this version" in info.notes[0]
    opps = hookimpl(optionalhook=True)(lambda: [])  # noqa: PIE807 - a function that takes a mark
    optional = types.SimpleNamespace(gradtape_opps=opps)
    gt.register_plugin(optional, "optional")  # a name that would otherwise count as misspelt
    gt.unregister_plugin("optional")


def test_names_of_plugins_are_unique(register) -> None:
    register("mine")
    with pytest.raises(PluginError, match="'mine' is registered already"):
        gt.register_plugin(plugin(), "mine")
    with pytest.raises(PluginError, match="no plugin called 'yours'"):
        gt.unregister_plugin("yours")


@pytest.mark.parametrize("name", ["", 3, ["mine"]])
def test_a_plugin_without_a_name_is_refused(name) -> None:
    with pytest.raises(PluginError, match="name is a non-empty string, not"):
        gt.register_plugin(plugin(ops=[]), name)


@pytest.mark.parametrize("thing", [None, "acme.gradtape_plugin", ["acme"], {"gradtape_ops": 1}, 3])
def test_a_plain_value_is_no_plugin(thing) -> None:
    with pytest.raises(PluginError, match=r"plugin 'idle': .* is a \w+; a plugin is a module or"):
        gt.register_plugin(thing, "idle")
    assert "idle" not in [info.name for info in gt.registry().plugins]


# -- disabling -------------------------------------------------------------------------------------


def test_disabling_and_enabling(register) -> None:
    register("cubes", ops=[cube_op()])
    gt.disable_plugin("cubes")
    try:
        with pytest.raises(UnknownOp, match=r"cubes::cube.*install the package 'cubes'"):
            gt.registry().op("cubes::cube")
        gt.register_plugin(plugin(ops=[cube_op()]), "other_cubes")  # no clash any more
        gt.unregister_plugin("other_cubes")
        gt.unregister_plugin("cubes")
        with pytest.raises(PluginError, match=r"'cubes': .* disabled; .*, disabled=False\)"):
            register("cubes", ops=[cube_op()])
    finally:
        gt.disable_plugin("cubes", disabled=False)
    gt.register_plugin(plugin(ops=[cube_op()]), "cubes")
    assert gt.registry().op("cubes::cube")(2.0).item() == 8.0


def test_disabling_by_environment(register, monkeypatch) -> None:
    monkeypatch.setenv("GRADTAPE_DISABLE_PLUGINS", "cubes,,  cupy ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what was asked for is no warning
        with pytest.raises(PluginError, match=r"'cubes': .* disabled; .*PLUGINS names it"):
            gt.register_plugin(plugin(ops=[cube_op()]), "cubes")
    with pytest.warns(RuntimeWarning, match="GRADTAPE_DISABLE_PLUGINS: there is no plugin 'cubes'"):
        registry = gt.registry()
    assert "cubes::cube" not in registry.ops
    assert "cupy" not in registry.backends
    monkeypatch.undo()
    look_again()


def test_a_name_to_leave_out_that_is_no_plugin_is_warned_of_once(monkeypatch) -> None:
    asked = pytest.warns(RuntimeWarning, match="disable_plugin: .*'cupi'; near names: cupy; 'grad")
    with asked as caught:
        gt.disable_plugin("cupi")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gt.disable_plugin("cupi", disabled=False)
        gt.disable_plugin("cupi")
        gt.registry()
        gt.disable_plugin("cupi", disabled=False)
    with pytest.warns(RuntimeWarning, match="no plugin 'cupyy'; near names: cupy"):
        gt.disable_plugin("cupyy", disabled=False)  # it is still out, then
    monkeypatch.setenv("GRADTAPE_DISABLE_PLUGINS", "layer,zebras")
    look_again()
    with pytest.warns(RuntimeWarning) as caught:
        gt.registry()
    told = sorted(str(warning.message) for warning in caught)
    assert [text.partition("; 'grad")[0] for text in told] == [
        "environment variable GRADTAPE_DISABLE_PLUGINS: there is no plugin 'layer'; near names: "
        "layers",
        "environment variable GRADTAPE_DISABLE_PLUGINS: there is no plugin 'zebras'",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        look_again()
        gt.registry()


def test_unknown_ops_suggest_near_names() -> None:
    with pytest.raises(UnknownOp, match=r"'sine'; near names: .*sin"):
        gt.registry().op("sine")
    with pytest.raises(LookupError, match="install the package 'far'"):
        gt.registry().op("far::away")


def test_an_op_that_was_taken_back_says_so() -> None:
    op = cube_op("left::cube")
    gt.register_plugin(plugin(ops=[op]), "left")
    assert op(2.0).item() == 8.0
    gt.unregister_plugin("left")
    with pytest.raises(UnknownOp, match="belongs to no registered plugin"):
        op(2.0)


# -- entry points ----------------------------------------------------------------------------------


def look_again():
    """Have plugins discovered anew, which any change of what is disabled does."""
    gt.disable_plugin("cupy", disabled=False)


@pytest.fixture
def entry_points(monkeypatch):
    """Pretend that distributions with these entry points are installed."""
    real = importlib.metadata.entry_points

    def install(**modules):
        points = []
        for name, content in modules.items():
            module = types.ModuleType(f"pretend_{name}")
            if isinstance(content, Exception):
                value = f"pretend_{name}_that_fails"
            else:
                vars(module).update(vars(content))
                monkeypatch.setitem(sys.modules, module.__name__, module)
                value = module.__name__
            points.append(importlib.metadata.EntryPoint(name, value, "gradtape"))
        every = real()
        points += [x for group in every.groups for x in every.select(group=group)]
        monkeypatch.setattr(
            importlib.metadata,
            "entry_points",
            lambda **asked: importlib.metadata.EntryPoints(points).select(**asked),
        )
        look_again()

    yield install
    monkeypatch.undo()
    look_again()


def test_an_installed_plugin_is_found(entry_points) -> None:
    entry_points(cubes=plugin(ops=[cube_op()]))
    assert gt.registry().op("cubes::cube")(2.0).item() == 8.0
    assert "cubes" in [info.name for info in gt.registry().plugins]


def test_a_broken_plugin_is_reported_and_not_fatal(entry_points) -> None:
    entry_points(broken=ImportError("no"), cubes=plugin(ops=[cube_op()]))
    with pytest.warns(RuntimeWarning, match=r"plugin 'broken'.*ModuleNotFoundError"):
        registry = gt.registry()
    assert registry.op("cubes::cube")(2.0).item() == 8.0
    assert gt.sin(0.0).item() == 0.0
    info = next(info for info in registry.plugins if info.name == "broken")
    assert "pretend_broken_that_fails" in info.problem
    with pytest.raises(UnknownOp, match=r"not in use: plugin 'broken'.*gradtape plugins"):
        registry.op("nothing_like_it")


def test_a_plugin_whose_hook_fails_is_reported_and_not_fatal(entry_points) -> None:
    entry_points(failing=plugin(ops=ZeroDivisionError("in a hook")))
    with pytest.warns(RuntimeWarning, match=r"plugin 'failing'.*in a hook.*test_registry\.py"):
        assert gt.registry().op("sin")(0.0).item() == 0.0


def test_installed_plugins_that_clash_lose_only_that_item(entry_points) -> None:
    entry_points(one=plugin(ops=[cube_op()]), two=plugin(ops=[cube_op(), cube_op("cubes::other")]))
    assert gt.sin(0.0).item() == 0.0
    with pytest.raises(PluginError, match=r"GRADTAPE_PLUGINS_ORDER=two.*disable_plugin"):
        gt.registry().op("cubes::cube")
    assert gt.registry().op("cubes::other")(2.0).item() == 8.0
    assert [bool(x.clashes) for x in gt.registry().plugins if x.name in ("one", "two")] == [
        True
    ] * 2
    gt.disable_plugin("two")
    try:
        assert gt.registry().op("cubes::cube")(2.0).item() == 8.0
    finally:
        gt.disable_plugin("two", disabled=False)


def test_a_misspelt_entry_point_group_is_noted(entry_points, monkeypatch) -> None:
    entry_points()
    real = importlib.metadata.entry_points
    points = [importlib.metadata.EntryPoint("acme", "acme", "gradtape.module")]
    points += [x for group in real().groups for x in real().select(group=group)]
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda **kw: importlib.metadata.EntryPoints(points)
    )
    look_again()
    (note,) = gt.registry().notes
    assert "group 'gradtape.module' is none of gradtape's; near names: gradtape.modules" in note


def test_a_hook_may_wait_until_what_it_provides_is_needed(entry_points, monkeypatch) -> None:
    imported = []

    class Late(types.ModuleType):
        def __getattr__(self, name):
            imported.append(name)
            raise AttributeError(name)

    module = Late("pretend_late")
    module.gradtape_modules = hookimpl(lambda: {"late.Module": gt.Module})
    monkeypatch.setitem(sys.modules, "pretend_late", module)
    entry_points()
    real = importlib.metadata.entry_points
    points = [importlib.metadata.EntryPoint("late", "pretend_late", "gradtape.modules")]
    points += [x for group in real().groups for x in real().select(group=group)]
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda **kw: importlib.metadata.EntryPoints(points).select(**kw),
    )
    look_again()
    info = next(info for info in gt.registry().infos if info.name == "late")
    assert info.waiting == {"modules"}
    assert gt.registry().modules["late.Module"] is gt.Module
    assert (info.waiting, info.modules) == (set(), ["late.Module"])


# -- backends --------------------------------------------------------------------------------------


class OtherArray(np.ndarray):
    pass


OtherArray.__module__ = "other_library"


class OtherBackend(Backend):
    name = "other"
    array_module = "other_library"
    xp = np

    def asarray(self, value, dtype=None, device=None):
        return np.array(value, dtype=dtype).view(OtherArray)

    def to_numpy(self, array):
        return np.asarray(array).view(np.ndarray)


def test_mixing_backends_names_both_and_the_way_out(register) -> None:
    register("other", backends=[OtherBackend()])
    a = gt.constant([1.0, 2.0])
    with gt.backend("other") as chosen:
        assert chosen.name == "other"
        b = gt.constant([3.0, 4.0])
    assert (a.device, b.device) == ("numpy:cpu", "other:cpu")
    with pytest.raises(BackendMismatch, match=r"multiply.*numpy and other.*tensor\.to\('numpy'\)"):
        a * b
    np.testing.assert_array_equal((a * b.to("numpy")).numpy(), [3.0, 8.0])
    v = gt.Variable([1.0, 2.0], name="w")
    with pytest.raises(BackendMismatch, match=r"'w'.*other.*numpy.*tensor\.to\('numpy'\)"):
        v.assign(b)


class Inner(np.ndarray):
    pass


Inner.__module__ = "other_library_inside.arrays"


class OfTwoModules(OtherBackend):
    array_module = ("other_library", "other_library_inside")


class Asked(OtherBackend):
    array_module = ""

    def owns(self, array_type):
        return array_type in (OtherArray, Inner)


@pytest.mark.parametrize("owner", [OfTwoModules, Asked])
def test_a_backend_says_which_arrays_it_owns(register, owner) -> None:
    register("owner", backends=[owner()])
    for kind in (OtherArray, Inner):
        assert gt.Tensor(np.ones(2).view(kind)).device == "other:cpu"


def test_gradients_cross_a_transfer(register) -> None:
    register("other", backends=[OtherBackend()])
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum((x.to("other") ** 2).to("numpy"))
    gradient = tape.gradient(y, x)
    assert gradient.device == "numpy:cpu"
    np.testing.assert_array_equal(gradient, [2.0, 4.0])


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("float64", r"a dtype: write x.astype\('float64'\)"),
        (gt.float16, r"a dtype: write x.astype\('float16'\)"),
        ("cuda:0", "for a device, use .*'cupy'"),
        ("cpu", "the CPU is 'numpy'"),
    ],
)
def test_a_dtype_or_a_device_in_place_of_a_backend_says_what_to_write(
    place: Any, said: str
) -> None:
    layer = gt.layers.Dense(1)
    layer(gt.ones((1, 1)))
    for move in (gt.ones(2).to, layer.to, lambda at: gt.backend(at).__enter__()):
        with pytest.raises(LookupError, match=said):
            move(place)


def test_a_place_that_is_no_name_is_refused() -> None:
    with pytest.raises(TypeError, match="expected the name of a backend, such as 'numpy', got 1"):
        gt.ones(2).to(1)  # type: ignore[arg-type]


def test_unknown_backends_and_arrays() -> None:
    with (
        pytest.raises(LookupError, match=r"no plugin provides the backend 'tpu'.*numpy"),
        gt.backend("tpu"),
    ):
        pass
    with pytest.raises(LookupError, match="tpu"):
        gt.constant(1.0).to("tpu:0")
    with pytest.raises(ValueError, match="device"):
        gt.constant(1.0).to("numpy:1")
