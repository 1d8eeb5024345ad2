"""Names of sizes in a ``TensorSpec``: what they show, and that equal names are equal sizes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gradtape as gt

BATCH = gt.TensorSpec(["batch", 3])


def test_a_named_size_is_an_unknown_one_with_a_name() -> None:
    assert (BATCH.shape, BATCH.names, BATCH.ndim) == ((None, 3), ("batch", None), 2)
    assert BATCH.dims == ("batch", 3)
    assert repr(BATCH) == "TensorSpec(('batch', 3), 'float32')"
    assert str(BATCH) == "float32[batch, 3]"
    assert repr(gt.TensorSpec(["n"], name="x")) == "TensorSpec(('n',), 'float32', name='x')"
    assert BATCH.admits((7, 3))
    assert not BATCH.admits((7, 4))
    for shape in (None, (), [None, 3], (2,)):
        assert gt.TensorSpec(shape).names is None
    assert gt.TensorSpec(None).dims is None
    assert gt.TensorSpec(BATCH.dims, "int32").names == ("batch", None)


def test_names_are_a_part_of_what_a_spec_is() -> None:
    same = gt.TensorSpec(("batch", 3), name="another name of the argument")
    assert same == BATCH
    assert hash(BATCH) == hash(same)
    for shape in (["n", 3], [None, 3], ["batch", "batch"], ["batch", None]):
        assert gt.TensorSpec(shape) != BATCH
    assert len({BATCH, same, gt.TensorSpec([None, 3])}) == 2


@pytest.mark.parametrize("name", ["", "batch size", "2n", "n-1", "3", "?", "x" * 2000])
def test_a_name_that_is_no_identifier_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"TensorSpec: .*Python identifier.*got"):
        gt.TensorSpec([name, 3])


def test_a_text_is_no_shape() -> None:
    with pytest.raises(TypeError, match="sequence of sizes"):
        gt.TensorSpec("batch")


def scaled(x: Any, w: Any) -> Any:
    return gt.sum(x, axis=1) * w


NAMED = gt.function(scaled, input_signature=[BATCH, gt.TensorSpec(["batch"])])
CLASH = (
    "scaled: size 'batch' is 2 in axis 0 of argument 'x' and 5 in axis 0 of argument 'w'; "
    "sizes with the same name must be equal in a call"
)


def test_equal_names_are_equal_sizes_at_each_call() -> None:
    for n in (1, 2, 0, 5):
        assert NAMED(gt.ones((n, 3)), gt.ones(n)).tolist() == [3.0] * n
    for _ in range(2):  # the first time that these shapes come, and the next
        with pytest.raises(ValueError, match=re.escape(CLASH)):
            NAMED(gt.ones((2, 3)), gt.ones(5))
    with pytest.raises(ValueError, match=re.escape(CLASH)):
        NAMED(x=np.ones((2, 3), "float32"), w=np.ones(5, "float32"))
    # broadcasting would have taken this one
    with pytest.raises(ValueError, match=r"size 'batch' is 2 .* and 1 in axis 0 of argument 'w'"):
        NAMED(gt.ones((2, 3)), gt.ones(1))
    assert len(NAMED.concrete_functions) == 1


def test_a_concrete_function_checks_them() -> None:
    concrete = gt.function(scaled).get_concrete_function(BATCH, gt.TensorSpec(["batch"]))
    assert repr(concrete) == "<ConcreteFunction scaled(float32[batch, 3], float32[batch])>"
    assert concrete(gt.ones((2, 3)), gt.ones(2)).tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match=re.escape(CLASH)):
        concrete(gt.ones((2, 3)), gt.ones(5))


def test_names_hold_within_one_call_and_not_from_call_to_call() -> None:
    other = gt.function(lambda x: x, input_signature=[gt.TensorSpec(["batch"])])
    assert other(gt.ones(2)).shape == (2,)
    assert other(gt.ones(3)).shape == (3,)


def test_sizes_of_one_name_are_one_size_in_a_trace() -> None:
    told: list[Any] = []

    def slopes(x: Any, w: Any, other: Any) -> Any:
        told.extend([x.shape[0] == w.shape[0], x.shape, gt.concatenate([w, w, other]).shape])
        return gt.grad(lambda w: gt.sum(gt.sum(x, axis=1) * w) / w.shape[0])(w)

    specs = [gt.TensorSpec([None]), gt.TensorSpec(["n", 3]), gt.TensorSpec(["n"])]
    f = gt.function(lambda other, x, w: slopes(x, w, other), input_signature=specs)
    for n in (1, 2, 4):
        assert f(gt.ones(7), gt.ones((n, 3)), gt.ones(n)).tolist() == [3.0 / n] * n
    assert list(map(str, told)) == ["True", "(n, 3)", "(m + 2*n,)"]  # m was n, until n came


def test_one_argument_may_name_a_size_twice() -> None:
    square = gt.function(gt.trace, input_signature=[gt.TensorSpec(["n", "n"])])
    assert square(gt.ones((3, 3))).item() == 3.0
    with pytest.raises(ValueError, match=r"'n' is 2 in axis 0 of .*'x' and 3 in axis 1 of .*'x'"):
        square(gt.ones((2, 3)))


def test_arguments_in_containers_are_called_by_their_path() -> None:
    spec = gt.TensorSpec(["n"])

    @gt.function(input_signature=[{"a": spec, "b": (spec,)}])
    def f(d: Any, k: int = 2) -> Any:
        return d["a"] * d["b"][0] * k

    assert f({"a": gt.ones(2), "b": (gt.ones(2),)}).tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match=r"of argument \"d\['a'\]\" .* argument \"d\['b'\]\[0\]\""):
        f({"a": gt.ones(2), "b": (gt.ones(3),)})
    text = str(f.get_concrete_function().graph)
    assert "%d['a']: " in text
    assert "%d['b'][0]: " in text


def test_arguments_without_a_name_are_called_by_their_place() -> None:
    f = gt.function(lambda *xs: xs[0] + xs[1], input_signature=[gt.TensorSpec(["n"])] * 2)
    with pytest.raises(ValueError, match="of argument 0 and 3 in axis 0 of argument 1"):
        f(gt.ones(2), gt.ones(3))


def test_a_function_inside_another_trace_checks_what_is_known() -> None:
    outer = gt.function(lambda x, w: NAMED(x, w) * 2.0)
    assert outer(gt.ones((2, 3)), gt.ones(2)).tolist() == [6.0, 6.0]
    with pytest.raises(ValueError, match=re.escape(CLASH)):
        outer(gt.ones((2, 3)), gt.ones(5))
    unknown = outer.get_concrete_function(gt.TensorSpec([None, 3]), gt.TensorSpec([None]))
    assert unknown(gt.ones((4, 3)), gt.ones(4)).tolist() == [6.0] * 4


def test_a_method_with_named_sizes() -> None:
    class Model(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec(["n", "d"]), gt.TensorSpec(["d"])])
        def __call__(self, x: Any, w: Any) -> Any:
            return gt.sum(x * w, axis=1)

    model = Model()
    assert model(gt.ones((2, 3)), gt.ones(3)).tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="size 'd' is 3 in axis 1 of argument 'x' and 1 in axis 0"):
        model(gt.ones((2, 3)), gt.ones(1))


def test_gradients_and_batches_of_a_function_with_named_sizes() -> None:
    x, w = gt.constant(np.arange(6.0, dtype="float32").reshape(2, 3)), gt.constant([1.0, 2.0])
    grads = gt.grad(lambda x, w: gt.sum(NAMED(x, w)), argnums=(0, 1))(x, w)
    np.testing.assert_array_equal(grads[0], [[1.0] * 3, [2.0] * 3])
    np.testing.assert_array_equal(grads[1], [3.0, 12.0])
    many = gt.vmap(NAMED)(gt.ones((4, 2, 3)), gt.ones((4, 2)))
    assert many.shape == (4, 2)
    with pytest.raises(ValueError, match=re.escape(CLASH)):
        gt.vmap(NAMED)(gt.ones((4, 2, 3)), gt.ones((4, 5)))


def test_sizes_of_one_name_are_one_size_in_the_trace() -> None:
    shapes = []

    @gt.function(input_signature=[gt.TensorSpec(["batch", "n", "n"]), gt.TensorSpec(["batch", 4])])
    def joined(x: Any, y: Any) -> Any:
        assert x.shape[0] == y.shape[0]
        assert x.shape[1] == x.shape[2]
        total = gt.concatenate([gt.sum(x, axis=2), y], axis=1)
        shapes.append(str(total.shape))
        return total

    assert joined(gt.ones((2, 3, 3)), gt.ones((2, 4))).shape == (2, 7)
    assert shapes == ["(batch, n + 4)"]
