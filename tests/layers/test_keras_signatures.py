"""Constructors beside those of Keras 3.15: what they take, in which order, and its defaults.

``tests/compat/keras_arguments.txt`` has them, and ``tests/compat`` holds ``tf.keras.layers`` to it.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from layer_cases import FAMILIES

from gradtape import layers
from gradtape.compat.tensorflow import keras

FILE = Path(__file__).parents[1] / "compat" / "keras_arguments.txt"
LINES = [line.removeprefix("layers.").split() for line in FILE.read_text().splitlines()]
CLASSES = {
    name: kind for name, kind in vars(layers).items() if inspect.isclass(kind) and name[0] != "_"
}
#: By class, the arguments of Keras and the text of their defaults.
ROWS = {
    name: dict(argument.partition("=")[::2] for argument in rest)
    for name, *rest in LINES
    if name in CLASSES
}
#: Not classes of Keras' room of layers.
ELSEWHERE = {"BatchNorm": "another name", "Model": "keras.Model", "Sequential": "keras.Sequential"}

#: Arguments that Keras has alone, and why.
ABSENT = {
    "lora_rank": "no weights of low rank",
    "lora_alpha": "no weights of low rank",
    "quantization_config": "no quantised weights",
    "gptq_unpacked_column_size": "no quantised weights",
    "autocast": "a policy says it",
    "weights": "load_weights and set_weights do it",
    "attention_axes": "attention is along one axis",
    "sliding_window": "attention_mask says it",
    "flash_attention": "one implementation",
    "use_gate": "a layer after it does it",
    "renorm": "its moments are the batch's, or the moving ones",
    "renorm_clipping": "no renorm",
    "renorm_momentum": "no renorm",
    "synchronized": "one process",
    "use_cudnn": "one implementation",
    "zero_output_for_mask": "Masking after it does it",
}
#: Arguments that come in another order, and why. keras.layers take them in Keras' order.
ORDERS = {
    "AlphaDropout": "noise_shape came later",
    "Conv3DTranspose": "that of the other transposed ones",
    "Dropout": "noise_shape came later",
    "GRU": "that of LSTM",
    "GRUCell": "seed is last",
    "Layer": "name and dtype come first",
    "SimpleRNN": "that of LSTM",
    "SpatialDropout2D": "that of SpatialDropout1D",
    "SpatialDropout3D": "that of SpatialDropout1D",
}
#: Defaults that differ, and why. keras.layers have Keras'.
DEFAULTS = {("Cropping2D", "cropping"): "1, as of Cropping1D and 3D, not to crop nothing"}


def arguments(kind: Any) -> dict[str, Any]:
    """Return the defaults of what a constructor takes by name."""
    found = inspect.signature(kind.__init__).parameters
    plain = {n: p.default for n, p in found.items() if p.kind is p.POSITIONAL_OR_KEYWORD}
    cell = getattr(layers, f"{kind.__name__}Cell", kind)
    rules = [*cell._rules(), "activity_regularizer", "trainable"] if "rules" in found else []
    return {**plain, **dict.fromkeys(rules)}


def one(value: Any) -> Any:
    """Return a default, the same number for all axes as one, a name in small letters."""
    if isinstance(value, (list, tuple)) and value:
        parts = [one(part) for part in value]
        return parts[0] if all(part == parts[0] for part in parts) else parts
    return value.lower() if isinstance(value, str) else value


def test_the_table_has_every_layer() -> None:
    assert {*ROWS, *ELSEWHERE} == {*CLASSES}
    cells = {"GRUCell", "LSTMCell", "SimpleRNNCell"}
    assert {name.split()[0] for name in FAMILIES} <= {*ROWS} - cells


@pytest.mark.parametrize("name", ROWS)
def test_a_layer_takes_what_keras_takes(name: str) -> None:
    ours = arguments(CLASSES[name])
    theirs = ROWS[name]
    missing = [argument for argument in theirs if argument not in (*ours, *ABSENT)]
    assert not missing
    plain = [n for n in inspect.signature(CLASSES[name]).parameters if n in theirs]
    order = [argument for argument in theirs if argument in plain]
    assert (plain != order) == (name in ORDERS)
    for argument, default in theirs.items():
        known = argument in ours and argument != "trainable"
        if known and default and (name, argument) not in DEFAULTS:
            assert one(ours[argument]) == one(ast.literal_eval(default)), argument


@pytest.mark.parametrize("name", ROWS)
def test_what_is_absent_is_refused_by_name(name: str) -> None:
    needed = {"units": 2, "input_dim": 2, "output_dim": 2, "num_heads": 1, "key_dim": 2}
    needed |= {"equation": "ab,bc->ac", "output_shape": 2, "cell": layers.GRUCell(2)}
    theirs = ROWS[name]
    given = {n: x for n, x in needed.items() if n in theirs and n in arguments(CLASSES[name])}
    for kind in (CLASSES[name], getattr(keras.layers, name)):
        for argument in set(ABSENT).intersection(theirs) - {"autocast"}:
            with pytest.raises(TypeError, match=argument):
                kind(**given, **{argument: 3})
