"""Arguments of Keras and PyTorch for files: the message says what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt


def model() -> gt.Module:
    made = gt.layers.Dense(2)
    made(gt.ones((1, 3)))
    return made


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: gt.load("m.h5", custom_objects={}),
            r"load takes no argument 'custom_objects'; leave it out: the file holds your classes "
            r"as graphs\. To get a class .* saved_as=\.\.\. and gradtape\.plugin\.saved_classes",
        ),
        (
            lambda: gt.load("m.h5", compile=False),
            r"'compile'; leave it out: gradtape\.training\.fit",
        ),
        (lambda: gt.load("m.h5", safe_mode=True), "'safe_mode'; leave it out: no code in a file"),
        (lambda: gt.load("m.h5", max_byte=1), "load takes no argument 'max_byte'; use max_bytes"),
        (lambda: gt.load("m.h5", foo=1), "'foo'; it takes path, max_bytes, lazy, allow_missing"),
        (
            lambda: gt.save(model(), "m.h5", overwrite=False),
            r"save takes no argument 'overwrite'; leave it out: a file is replaced; test os\.path",
        ),
        (
            lambda: gt.save(model(), "m.h5", include_optimizer=True),
            r"'include_optimizer'; use a module that holds both: both = gradtape\.Module\(\)",
        ),
        (lambda: model().save_weights("m", overwrite=True), "save_weights takes no argument 'over"),
        (lambda: gt.save_weights(model(), "m", save_format="h5"), "the end of the path says the"),
        (
            lambda: gt.load_weights("m.h5", model(), by_name=True),
            "load_weights takes no argument 'by_name'; use strict=False, .* and mapping",
        ),
        (lambda: model().load_weights("m.h5", skip_mismatch=True), "'skip_mismatch'; use strict=F"),
        (
            lambda: gt.training.predict(model(), np.ones((1, 3)), verbose=0),
            "predict takes no argument 'verbose'; leave it out: only fit shows",
        ),
        (
            lambda: gt.training.evaluate(model(), (1, 2), return_dict=True),
            "evaluate takes no argument 'return_dict'; leave it out: the result is a dictionary",
        ),
        (
            lambda: gt.training.fit(model(), (1, 2), sample_weight=3),
            r"'sample_weight'; use the third part of the data: \(x, y, sample_weight\)",
        ),
    ],
)
def test_the_message_says_what_to_write(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


def test_signatures_stay() -> None:
    assert list(inspect.signature(gt.load).parameters) == [
        "path",
        "max_bytes",
        "lazy",
        "allow_missing",
    ]
    assert inspect.signature(gt.Module.save_weights).parameters["layout"].default == "gradtape"
