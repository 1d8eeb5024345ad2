"""Names: aliases are gradtape's own objects, what is missing says so, and none costs an import."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
from gradtape.compat.tensorflow import names
from gradtape.core.extend import Op

ALIASES = [
    (namespace, name, path)
    for namespace, known in names.ALIASES.items()
    for name, path in known.items()
]


@pytest.mark.parametrize(("namespace", "name", "path"), ALIASES)
def test_an_alias_is_the_object_itself(namespace, name, path) -> None:
    assert getattr(names.module_of(namespace), name) is names.resolve(path)


@pytest.mark.parametrize(("namespace", "name", "path"), ALIASES)
def test_an_op_takes_tensorflows_label(namespace, name, path) -> None:
    call = getattr(names.module_of(namespace), name)
    if namespace in ("tf", "tf.math", "tf.nn") and isinstance(call, Op):
        assert "name" in inspect.signature(type(call).__call__).parameters
    for adapted in (tf.pow, tf.math.erf, tf.round):
        assert adapted.gradtape_names


def test_a_label_changes_nothing() -> None:
    assert tf.add(1.0, 2.0, name="three") == tf.pow(3.0, 1.0, name="p") == 3.0
    assert tf.einsum("i,i->", [1.0], [2.0], name="e") == tf.math.round(2.1, name="r") == 2.0


def test_common_ops_are_gradtapes_own() -> None:
    assert tf.GradientTape is gt.GradientTape
    assert tf.sin is tf.math.sin is gt.sin
    assert tf.multiply is gt.multiply
    assert tf.nn.tanh is gt.nn.tanh
    assert tf.sigmoid is tf.nn.sigmoid is gt.nn.sigmoid
    assert tf.custom_gradient is gt.custom_gradient
    assert tf.recompute_grad is gt.recompute_grad
    assert tf.autodiff.ForwardAccumulator is gt.ForwardAccumulator


@pytest.mark.parametrize("name", ["sin", "multiply", "GradientTape", "custom_gradient"])
def test_a_name_that_was_asked_for_is_found_without_a_call(name: str) -> None:
    # so it costs what it costs in gradtape: a module's __getattr__ is asked once
    assert getattr(tf, name) is vars(tf)[name] is vars(gt)[name]


def test_importing_gradtape_does_not_import_the_compat_names() -> None:
    code = (
        "import sys, gradtape as gt\n"
        "gt.sin(1.0)\n"
        "print([name for name in sys.modules if 'compat' in name and 'gradtape' in name])\n"
        "import gradtape.compat.tensorflow\n"
        "print('tensorflow' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "False"]


def test_submodules_are_imported_as_tensorflows_are() -> None:
    from gradtape.compat.tensorflow import keras
    from gradtape.compat.tensorflow.keras import layers
    from gradtape.compat.tensorflow.keras.layers import Dense

    assert keras is tf.keras
    assert layers.Dense is Dense is tf.keras.layers.Dense


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gradients", "use gradtape.GradientTape"),
        ("reduce_summ", "the nearest name is tf.reduce_sum"),
        ("linalg.kronecker", "nearest name is"),
        ("math.sinn", "nearest name is tf.math.sin"),
        ("nn.conv9d_transposed_twice", "gradtape has no tf.nn.conv9d_transposed_twice"),
        ("keras.layers.Dens", "the nearest name is tf.keras.layers.Dense"),
        ("keras.layers.RandomFlip", "use gradtape.image.random_flip_left_right, in a function"),
        ("keras.layers.InputSpec", "tf.keras.layers.InputSpec; leave it out: a layer refuses"),
        ("keras.layers.MaxNumBoundingBoxes", "MaxNumBoundingBoxes (see docs"),  # and not tf.max
        ("keras.utils.get_file", "use urllib"),
        ("keras.callbacks.EarlyStoping", "tf.keras.callbacks.EarlyStopping"),
        ("keras.optimizers.Adamex", "the nearest name is tf.keras.optimizers.Adam"),
    ],
)
def test_a_missing_name_says_so_and_tells_the_nearest(path, expected) -> None:
    namespace, _, name = f"tf.{path}".rpartition(".")
    module = names.module_of(namespace)
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert expected in str(caught.value)
    assert "docs/migration.md" in str(caught.value)
    assert not hasattr(module, name)


def test_the_table_lists_every_name_once_with_what_it_is() -> None:
    table = names.rows()
    listed = [row.tensorflow for row in table]
    assert len(listed) == len(set(listed))
    assert {"tf.sin", "tf.reduce_sum", "tf.linalg.solve", "tf.keras.layers.Dense"} <= set(listed)
    for row in table:
        assert row.how in ("same", "adapted")
        for path in row.gradtape.split(", ") if row.gradtape else ():
            if path.startswith("builtins."):
                continue
            assert path.startswith("gradtape.")
            if path not in ("gradtape.at", "gradtape.Tensor.shape"):
                names.resolve(path.removeprefix("gradtape."))


def test_every_adapted_function_is_documented() -> None:
    for namespace in sorted(names.NAMESPACES):
        module = names.module_of(namespace)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                assert inspect.getdoc(value), f"{namespace}.{name}"
