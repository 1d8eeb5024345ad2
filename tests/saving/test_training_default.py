"""A model whose ``training`` is None by default is saved for a call without it."""

from __future__ import annotations

import gradtape as gt


class Model(gt.Module):
    def __call__(self, x, training=None):
        return x * (2.0 if training else 1.0)


def test_a_default_that_was_never_used_is_traced_too(tmp_path) -> None:
    model, x = Model(), gt.ones((3,))
    model(x, training=True)
    gt.save(model, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    assert loaded(x).tolist() == [1.0] * 3
    assert loaded(x, training=False).tolist() == [1.0] * 3
    assert loaded(x, training=True).tolist() == [2.0] * 3
