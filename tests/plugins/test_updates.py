"""``x.at[index]`` and its relatives: new tensors with some elements changed."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from families.updates import ALONG, RNG, X
from gradcheck import check_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gradtape as gt

MASK = X > 0
REPEATED = np.array([2, 0, 2])
INDICES = {
    "row": 1,
    "slices": (slice(None, None, 2), slice(1, 3)),
    "ellipsis": (..., -1),
    "newaxis": (None, 0),
    "integers": REPEATED,
    "pairs": (REPEATED, np.array([1, 1, 1])),
    "mask": MASK,
    "mask of rows": np.array([True, False, True]),
    "everything": ...,
}


def changed(x, index, values, how):
    out = np.array(x)
    if how == "set":
        out[index] = values
    else:
        np.add.at(out, index, values)
    return out


@pytest.mark.parametrize("how", ["set", "add"])
@pytest.mark.parametrize("case", INDICES)
def test_values_and_gradients(case, how):
    index = INDICES[case]
    shape = X[index].shape
    for values in (RNG.standard_normal(shape), RNG.standard_normal(shape[-1:]), np.float64(2.5)):
        want = changed(X, index, values, how)
        fn = lambda x, v: getattr(x.at[index], how)(v)  # noqa: E731
        np.testing.assert_allclose(fn(gt.constant(X), values).numpy(), want, rtol=1e-15)
        np.testing.assert_allclose(gt.function(fn)(X, values).numpy(), want, rtol=1e-15)
        check_gradients(lambda x, v, fn=fn: fn(x, v) ** 2, X, values)


@pytest.mark.parametrize("how", ["set", "add"])
def test_one_trace_serves_every_shape(how):
    @gt.function(input_signature=[gt.TensorSpec(None, "float64"), gt.TensorSpec(None, "float64")])
    def slopes(x, v):
        with gt.GradientTape() as tape:
            tape.watch([x, v])
            y = getattr(x.at[[0, 1, 0]], how)(v)
            loss = gt.sum(y * y)
        return [y, *tape.gradient(loss, [x, v])]

    for x, v in [(X, X), (X, X[0]), (X[:, 0], np.float64(3.0))]:
        y, gx, gv = slopes(x, v)
        np.testing.assert_allclose(y.numpy(), changed(x, [0, 1, 0], v, how), rtol=1e-15)
        xs = [gt.constant(x), gt.constant(v)]
        with gt.GradientTape() as tape:
            tape.watch(xs)
            z = getattr(xs[0].at[[0, 1, 0]], how)(xs[1])
            loss = gt.sum(z * z)
        for mine, theirs in zip((gx, gv), tape.gradient(loss, xs), strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy())


def test_the_last_value_stays_and_it_alone_has_a_gradient():
    x, v = gt.constant([1.0, 2.0, 3.0]), gt.constant([10.0, 20.0, 30.0])
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([x, v])
        y = x.at[[1, 1, 0]].set(v)
    assert y.tolist() == [30.0, 20.0, 3.0]
    assert tape.gradient(y, x).tolist() == [0.0, 0.0, 1.0]
    assert tape.gradient(y, v).tolist() == [0.0, 1.0, 1.0]
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_added_values_add_up():
    x = gt.constant([1.0, 2.0])
    assert x.at[[0, 0]].add([1.0, 2.0]).tolist() == [4.0, 2.0]
    assert x.at[[0, 0]].subtract(1.0).tolist() == [-1.0, 2.0]
    assert x.at[1].get().item() == 2.0
    assert x.at[[0, 0]].apply(lambda part: part * 10.0).tolist() == [10.0, 2.0]


def test_values_take_the_dtype_of_the_tensor():
    x = gt.constant([1.0, 2.0])
    assert x.at[0].set(np.float64(3.0)).dtype == "float32"
    assert x.at[0].add(1).dtype == "float32"
    assert gt.constant([1, 2]).at[0].set(7).tolist() == [7, 2]
    v = gt.constant(np.float64(2.0))
    with gt.GradientTape() as tape:
        tape.watch(v)
        y = x.at[0].set(v)
    assert tape.gradient(y, v).dtype == "float64"


def test_variables_are_read_not_changed():
    v = gt.Variable([1.0, 2.0])
    with gt.GradientTape() as tape:
        y = v.at[0].set(5.0)
    assert (y.tolist(), v.numpy().tolist()) == ([5.0, 2.0], [1.0, 2.0])
    assert tape.gradient(y, v).tolist() == [0.0, 1.0]


def test_integers_do_not_take_floats():
    with pytest.raises(TypeError, match=r"set.*int64.*float64"):
        gt.constant([1, 2]).at[0].set(1.5)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_put_along_axis_is_numpys(axis):
    indices = {0: ALONG[:, :1] % 3, None: np.array([5, 0, -1])}.get(axis, ALONG)
    for values in (np.float64(9.0), RNG.standard_normal(indices.shape)):
        want = X.copy()
        np.put_along_axis(want, indices, values, axis)
        got = gt.put_along_axis(X, indices, values, axis)
        np.testing.assert_array_equal(got.numpy(), want)
        check_gradients(lambda x, v, i=indices: gt.put_along_axis(x, i, v, axis) ** 2, X, values)
        trace = gt.function(
            lambda x, v, i=indices: gt.put_along_axis(x, i, v, axis),
            input_signature=[
                gt.TensorSpec([None, None], "float64"),
                gt.TensorSpec(None, "float64"),
            ],
        )
        np.testing.assert_array_equal(trace(X, values).numpy(), want)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_setting_is_numpys_assignment_for_every_index(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    index = data.draw(
        st.one_of(
            hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True),
            hnp.integer_array_indices(shape),
            hnp.arrays(bool, shape),
        )
    )
    x = RNG.standard_normal(shape)
    values = RNG.standard_normal(np.shape(x[index]))
    np.testing.assert_array_equal(
        gt.constant(x).at[index].set(values).numpy(), changed(x, index, values, "set")
    )


def test_the_portable_kernel_assigns_on_a_strict_library():
    kernel = gt.registry().ops["index_set"].kernel
    rows, pairs = (("array", 0),), (("array", 0), ("array", 1))
    for x, arrays, index in [
        (X[:, 0], (REPEATED,), rows),
        (X[:, 0], (np.zeros(0, int),), rows),
        (X, (REPEATED, REPEATED), pairs),
        (X, (MASK,), rows),
        (X, (), (("slice", 1, None, None),)),
    ]:
        where = arrays if arrays else (slice(1, None),)
        values = RNG.standard_normal(x[where].shape)
        got = kernel(strict, *map(strict.asarray, (x, values, *arrays)), index=index)
        np.testing.assert_array_equal(np.asarray(got), changed(x, where, values, "set"))
