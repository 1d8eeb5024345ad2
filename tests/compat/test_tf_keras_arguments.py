"""Keras' arguments: their names, order and defaults, as Keras 3.15 on JAX tells them."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

from gradtape.compat.tensorflow import names

LINES = (Path(__file__).parent / "keras_arguments.txt").read_text().splitlines()
KERAS = {path: arguments for path, *arguments in map(str.split, LINES)}
FREE = inspect.Parameter.VAR_KEYWORD
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
#: Base classes, of which programs make their own: gradtape's order, or Keras 2's.
BASES = ("metrics.Metric", "optimizers.Optimizer")
#: A default that says the same in other words: a name by the class, a number as an integer.
OTHER_WORDS = {
    *(("", name) for name in ("name", "patience", "min_delta")),
    ("layers.Flatten", "data_format"),
    ("metrics.AUC", "from_logits"),  # None: what the loss takes
    *(
        (f"metrics.{name}", "num_thresholds")  # None: every score, where Keras takes 200
        for name in ("AUC", "PrecisionAtRecall", "RecallAtPrecision")
    ),
    ("metrics.SensitivityAtSpecificity", "num_thresholds"),
    ("metrics.SpecificityAtSensitivity", "num_thresholds"),
    *(
        (f"metrics.{of}{what}", "thresholds")
        for of in ("True", "False")
        for what in ("Positives", "Negatives")
    ),
}
TENSORFLOWS = "MAE MAPE MSE MSLE mae mape mse msle kld logcosh"
UTILITIES = "Progbar get_custom_objects plot_model register_keras_serializable"
#: Keras has them under another name, too, which is looked at there.
SAVING = (
    "CustomObjectScope custom_object_scope get_custom_objects load_model "
    "register_keras_serializable save_model"
)
NOT_CHECKED = tuple(
    f"tf.keras.{space}"
    for space in (
        "activations backend mixed_precision ops optimizers.experimental optimizers.legacy "
        "preprocessing.image preprocessing.sequence preprocessing.text"
    ).split()
)
#: The losses are metrics, too.
OF_LOSSES = {name for name, path in names.ALIASES["tf.keras.metrics"].items() if ".losses." in path}


def found(path: str) -> Any:
    namespace, _, name = f"tf.keras.{path}".rpartition(".")
    return getattr(names.module_of(namespace), name)


def arguments(path: str) -> dict[str, inspect.Parameter]:
    kind = found(path)
    call = kind.__init__ if inspect.isclass(kind) else kind
    parameters = dict(inspect.signature(call).parameters)
    parameters.pop("self", None)
    return parameters


def plain(value: Any) -> Any:
    """Return sizes that are all one number as that number, and names in small letters."""
    while isinstance(value, (list, tuple)) and value and all(part == value[0] for part in value):
        value = value[0]
    return value.lower() if isinstance(value, str) else value


def test_every_class_and_function_is_keras() -> None:
    here = {
        f"{space.removeprefix('tf.keras.')}.{name}"
        for space in sorted(names.NAMESPACES)
        if space.startswith("tf.keras.") and space not in NOT_CHECKED
        for name in {*names.module_of(space).__all__, *names.ALIASES.get(space, {})}
        if name != "get" and not inspect.ismodule(getattr(names.module_of(space), name))
    }
    assert here - set(KERAS) == {
        *(f"losses.{name}" for name in TENSORFLOWS.split()),
        *(f"metrics.{name}" for name in OF_LOSSES),
        "callbacks.History",
        "losses.Reduction",
        "metrics.ConfusionMatrix",
        "optimizers.schedules.OneCycle",
        *(f"utils.{name}" for name in UTILITIES.split()),
        *(f"saving.{name}" for name in SAVING.split()),
    }


@pytest.mark.parametrize("path", [path for path in KERAS if path not in BASES])
def test_arguments_have_keras_order(path: str) -> None:
    ours = [name for name, p in arguments(path).items() if p.kind in BY_POSITION]
    theirs = [argument.partition("=")[0] for argument in KERAS[path]]
    assert ours[: len(theirs)] == theirs[: len(ours)]


@pytest.mark.parametrize("path", KERAS)
def test_arguments_have_keras_defaults(path: str) -> None:
    ours = arguments(path)
    for argument in KERAS[path]:
        name, _, text = argument.partition("=")
        if text and name in ours and not OTHER_WORDS & {("", name), (path, name)}:
            same = plain(ast.literal_eval(text))
            assert plain(ours[name].default) == same, f"{path}({name}=...)"


ADAPTED = [path for path in KERAS if hasattr(found(path), "gradtape_names") and path not in BASES]


@pytest.mark.parametrize("path", ADAPTED)
def test_every_argument_of_keras_is_known_or_refused_by_name(path: str) -> None:
    ours = arguments(path)
    free = any(p.kind is FREE for p in ours.values())
    for argument in KERAS[path]:
        name = argument.partition("=")[0]
        assert name in ours or free, f"{path}({name}=...)"
