"""Programs on other backends that also use Python's numbers, lists and booleans, as on NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest

import gradtape as gt
from gradtape.plugin import Backend, hookimpl

strict_library = pytest.importorskip("array_api_strict")
pytest.importorskip("jax")

X = np.array([[1.0, -2.0, 0.5], [-0.25, 3.0, -1.0]], np.float32)


class Strict(Backend):
    name = "strict"
    array_module = "array_api_strict"
    xp = strict_library

    def asarray(self, value, dtype=None, device=None):
        return self.xp.asarray(np.array(value, dtype=dtype), copy=True)

    def to_numpy(self, array):
        return np.from_dlpack(array)


PLUGIN = SimpleNamespace(gradtape_backends=hookimpl(lambda: [Strict()]))


@pytest.fixture(params=["strict", "jax"])
def place(request):
    with gt.register_plugin(PLUGIN, "strict"):
        yield request.param


PROGRAMS = {
    "numbers": lambda x: gt.where(x > 0, 1.0, 0.0),
    "list": lambda x: gt.add(x, [1, 2, 3]),
    "stack": lambda x: gt.stack([x[0], [1, 2, 3]]),
    "index of a list": lambda x: x[[0, 1, 0]],
    "place of a list": lambda x: x.at[[0, 0, 1]].add(2.0),
    "constant": lambda x: (gt.sum(x), 3.0),
    "sum of booleans": lambda x: gt.sum(x > 0),
    "mean of booleans": lambda x: gt.mean(x > 0),
    "counts": lambda x: gt.cumsum(x > 0, axis=0),
    "True": lambda x: gt.add(x, True),
    "logical": lambda x: gt.logical_or(x, 0.0),
    "fmod": lambda x: gt.fmod(2.0, x),
    "heaviside": lambda x: gt.heaviside(gt.argmax(x, axis=0), 2),
    "arctan2 of integers": lambda x: gt.arctan2(gt.argmax(x, axis=0), gt.argmax(x, axis=0)),
    "product with integers": lambda x: gt.matmul(x.T, gt.argmax(x, axis=1)[:, None]),
    "new axes": lambda x: x[None, ..., None],
}


def same(found, wanted, place):
    if isinstance(wanted, (tuple, list)):
        for pair in zip(found, wanted, strict=True):
            same(*pair, place)
    elif isinstance(wanted, gt.Tensor):
        assert found.device.startswith(place)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found.to("numpy").numpy(), wanted.numpy(), rtol=1e-6)
    else:
        assert found == wanted


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_they_give_on_numpy(name, place):
    program, x = PROGRAMS[name], gt.constant(X)
    same(program(x.to(place)), program(x), place)
    rows = gt.stack([x, 2.0 * x])
    same(gt.vmap(program)(rows.to(place)), gt.vmap(program)(rows), place)


@pytest.mark.parametrize("op", [gt.maximum, gt.minimum], ids=["maximum", "minimum"])
def test_gradients_beside_numbers(op, place):
    x = gt.constant(X)
    slope = gt.grad(lambda x: gt.sum(op(0.0, x)))
    same(slope(x.to(place)), slope(x), place)
    slope = gt.grad(lambda x: gt.sum(x[None, :, None] ** 2))
    same(slope(x.to(place)), slope(x), place)


def test_a_backend_of_others_arrays_does_not_remove_their_owner():
    class Mine(Backend):
        name = "mine"
        array_module = ("numpy", "mine")

    plugin = SimpleNamespace(gradtape_backends=hookimpl(lambda: [Mine()]))
    with pytest.raises(gt.errors.PluginError, match="claims the arrays of numpy"):
        gt.register_plugin(plugin, "mine")
    assert gt.ones(2).device == "numpy:cpu"


def test_random_numbers_outlive_the_backend_that_drew_first():
    from gradtape.plugins.ops.random import functions

    before = gt.random.normal((2,))  # the generator exists
    assert before.device == "numpy:cpu"
    stream = functions.shared().state
    stream.set_array(strict_library.asarray(stream.numpy()))  # as if "strict" had drawn first
    with gt.register_plugin(PLUGIN, "strict"):
        with gt.backend("strict"):
            assert gt.random.normal((2,)).device == "strict:cpu"
        left = gt.ones(2).to("strict")
    assert gt.random.normal((2,)).device == "numpy:cpu"
    gt.random.set_seed(3)
    first = gt.random.normal((2,)).tolist()
    gt.random.set_seed(3)
    assert gt.random.normal((2,)).tolist() == first
    assert left.numpy().tolist() == [1.0, 1.0]  # values can still be read
