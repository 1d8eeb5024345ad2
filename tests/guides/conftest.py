"""The two libraries that the guides' programs are run with: gradtape, and its TensorFlow names."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf


class Library:
    """A module, with the names of gradtape for what it calls otherwise."""

    def __init__(self, module: ModuleType, **names: Any) -> None:
        self.module = module
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)


LIBRARIES = {
    "gradtape": Library(
        gt, BatchNorm=gt.layers.BatchNorm, Dense=gt.layers.Dense, norm=gt.linalg.norm
    ),
    "tensorflow": Library(
        tf,
        BatchNorm=tf.keras.layers.BatchNormalization,
        Dense=tf.keras.layers.Dense,
        angle=tf.math.angle,
        as_tensor=tf.convert_to_tensor,
        ceil=tf.math.ceil,
        clip=tf.clip_by_value,
        imag=tf.math.imag,
        load=tf.saved_model.load,
        log=tf.math.log,
        max=tf.reduce_max,
        mean=tf.reduce_mean,
        prod=tf.reduce_prod,
        real=tf.math.real,
        save=tf.saved_model.save,
        sum=tf.reduce_sum,
    ),
}


@pytest.fixture(params=LIBRARIES)
def lib(request: pytest.FixtureRequest) -> Library:
    """gradtape, then its TensorFlow-compatible names, for programs that read alike in both."""
    return LIBRARIES[request.param]
