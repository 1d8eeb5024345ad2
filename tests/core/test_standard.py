"""What the array API standard asks of a namespace beside its functions."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt


def test_the_namespace_of_a_tensor_tells_about_itself() -> None:
    info = gt.constant([1.0]).__array_namespace__().__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert info.default_device() == gt.constant([1.0]).device
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == gt.constant(1.0).dtype
    assert info.default_dtypes()["complex floating"] == gt.constant(1j).dtype
    assert info.default_dtypes()["integral"] == gt.constant(1).dtype
    for name, dtype in info.dtypes().items():
        assert gt.zeros(2, dtype=name).dtype == dtype == getattr(gt, name)
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}


def test_shapes_broadcast_as_numpys_do() -> None:
    for shapes in ([(2, 1), (3,)], [(1,), ()], [], [3, (2, 1)], [(0,), (1, 1)]):
        assert gt.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)
    assert gt.broadcast_shapes((None, 3), (1,)) == (None, 3)
    with pytest.raises(ValueError, match=r"broadcast_shapes: shapes \(2,\) and \(3,\)"):
        gt.broadcast_shapes((2,), (3,))
    with pytest.raises(TypeError, match="broadcast_shapes: a shape is"):
        gt.broadcast_shapes((2.5,))
