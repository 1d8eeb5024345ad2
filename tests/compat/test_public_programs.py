"""The script that runs public programs, and its table: references and substitutions, no copies."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPT = DOCS / "benchmarks" / "programs.py"
TABLE = json.loads(SCRIPT.with_suffix(".json").read_text(encoding="utf-8"))

PROGRAM = '''
"""Prose."""
import tensorflow as tf
from tensorflow.keras import layers

# the data
(x, y), _ = tf.keras.datasets.mnist.load_data()
x = x / 255.0

model = tf.keras.Sequential([layers.Flatten(), layers.Dense(10)])
optimizer = tf.keras.optimizers.SGD(lr=0.1)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, model(x), True))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss

losses = [float(step(x, y)) for _ in range(1000)]
assert len(losses) == 3 and losses[2] < losses[0]

tf.no_such_name

print(
    "%d"
    % 3
)
'''


def ran(folder: Path) -> str:
    """Return what the script prints for the first program of the table."""
    first = TABLE[0]
    argv = [sys.executable, str(SCRIPT), "--from", str(folder), "--only", first["path"]]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_programs_without_a_text_are_not_here(tmp_path) -> None:
    assert "not here" in ran(tmp_path)
    assert "0 of 1 programs here; 0 of 0 cells run; 0 run whole" in ran(tmp_path)


def test_a_program_runs_cell_by_cell(tmp_path, monkeypatch) -> None:
    # by its path: tests have modules called so, too
    spec = importlib.util.spec_from_file_location("public_programs", SCRIPT)
    programs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(programs)
    (tmp_path / "me/it").mkdir(parents=True)
    (tmp_path / "me/it/a.py").write_text(PROGRAM)
    changes = [["range(1000)", "range(3)"], ["no such text", ""]]
    one = {"repository": "me/it", "path": "a.py", "substitutions": changes}
    result = programs.run(one, tmp_path)
    assert [error and error.partition(":")[0] for error in result["errors"]] == [
        *(None,) * 5,
        "AttributeError",
        None,
    ]
    assert result["missed"] == ["no such text"]

    cells = [{"cell_type": "code", "source": ["%matplotlib inline\n", "import keras\n", "x = 1"]}]
    (tmp_path / "me/it/b.ipynb").write_text(json.dumps({"cells": cells}))
    result = programs.run({**one, "path": "b.ipynb", "substitutions": []}, tmp_path)
    assert result == {"errors": [None], "missed": []}


@pytest.mark.parametrize("program", TABLE, ids=lambda x: f"{x['repository']}/{x['path']}")
def test_the_table_refers_and_does_not_copy(program) -> None:
    assert set(program) == {"repository", "path", "commit", "license", "substitutions"}
    assert program["repository"].count("/") == 1
    assert program["path"].endswith((".py", ".ipynb"))
    assert program["commit"] is None or len(program["commit"]) == 40
    for old, new in program["substitutions"]:
        assert 0 < len(old) < 200
        assert len(new) < 100


def test_the_table_has_thirty_programs() -> None:
    named = {(program["repository"], program["path"]) for program in TABLE}
    assert len(named) == len(TABLE) >= 30


def test_arguments_have_their_former_names() -> None:
    import gradtape.compat.tensorflow as tf

    assert float(tf.keras.optimizers.Adam(lr=0.25).learning_rate) == 0.25
    assert tf.keras.layers.LeakyReLU(alpha=0.2).negative_slope == 0.2
    assert tf.keras.layers.ELU(alpha=0.5).alpha == 0.5
    with pytest.raises(TypeError, match="alpha not supported"):
        tf.keras.layers.Dense(3, alpha=2.0)


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "SimpleRNNCell"])
def test_a_cell_gives_the_states_before_the_first_step(kind) -> None:
    import gradtape.compat.tensorflow as tf

    x = tf.ones((2, 4))
    cell = getattr(tf.keras.layers, kind)(3)
    states = cell.get_initial_state(batch_size=tf.shape(x)[0], dtype=tf.float32)
    assert [(state.shape, state.dtype) for state in states] == [((2, 3), "float32")] * len(states)
    out, after = cell(x, states)
    assert out.shape == (2, 3)
    assert len(after) == len(states)


def test_a_layer_makes_weights_by_the_former_name() -> None:
    import gradtape.compat.tensorflow as tf

    class Line(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.w = self.add_variable("w", [3, 1])

        def call(self, x):
            return x @ self.w

    assert Line()(tf.ones((2, 3))).shape == (2, 1)
