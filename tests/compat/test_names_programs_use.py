"""Every name that public tape programs use works, or is refused in words that say what to use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gradtape.compat.tensorflow as tf

LINES = [
    line
    for line in (Path(__file__).parent / "names_programs_use.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
WORKS = [line for line in LINES if not line.startswith("no ")]
REFUSED = [line.removeprefix("no ").split(": ", 1) for line in LINES if line.startswith("no ")]


def raises(error, call) -> bool:
    try:
        call()
    except error:
        return True
    return False


def inside(context, call):
    with context:
        return call()


def weights_back(model, path) -> bool:
    before = model.get_weights()
    model.save_weights(path)
    model.set_weights([w + 1.0 for w in before])
    model.load_weights(path)
    return all(map(np.array_equal, model.get_weights(), before))


def model_back(model, path) -> bool:
    model.save(path)
    x = tf.ones((1, 2))
    return np.array_equal(tf.keras.models.load_model(path)(x), model(x))


def regular(layer):
    layer(tf.ones((1, 2)))
    return layer


@pytest.mark.parametrize("line", WORKS)
def test_a_name_that_programs_use_works(line, tmp_path) -> None:
    scope = {
        "K": tf.keras.backend,
        "approx": pytest.approx,
        "inside": inside,
        "model_back": model_back,
        "np": np,
        "raises": raises,
        "regular": regular,
        "tf": tf,
        "tmp": lambda name: str(tmp_path / name),
        "weights_back": weights_back,
    }
    assert np.all(eval(line, scope))


@pytest.mark.parametrize(("path", "words"), REFUSED)
def test_a_name_that_is_not_there_says_what_to_use(path, words) -> None:
    *parents, name = path.split(".")
    space = tf
    for part in parents[1:]:
        space = getattr(space, part)
    with pytest.raises((AttributeError, ImportError)) as caught:
        getattr(space, name)
    told = str(caught.value)
    assert f"no {path}" in told
    assert words in told.partition("use ")[2]
