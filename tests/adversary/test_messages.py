"""Errors that a newcomer meets in the first hour: what they say, and that they say it once."""

from __future__ import annotations

import pytest

import gradtape as gt


@pytest.mark.parametrize(
    "flat",
    [lambda x: x.reshape(x.shape[0], -1), lambda x: gt.reshape(x, (x.shape[0], -1))],
)
def test_reshaping_by_a_size_that_a_trace_does_not_know(flat: object) -> None:
    f = gt.function(flat, input_signature=[gt.TensorSpec([None, 2, 3])])
    assert [f(gt.ones((n, 2, 3))).shape for n in (1, 4)] == [(1, 6), (4, 6)]


def test_a_size_that_is_none_is_refused_with_where_sizes_come_from() -> None:
    with pytest.raises(TypeError, match=r"\(None, 2\); None means .* x\.shape\[i\], which works"):
        gt.zeros((None, 2))


def test_sizes_that_are_no_integers() -> None:
    with pytest.raises(TypeError, match="reshape: a shape is an integer"):
        gt.ones(4).reshape(2.0, 2)


def test_an_index_out_of_range_is_said_once() -> None:
    with pytest.raises(IndexError, match=r"^getitem: index 5 does not fit shape \(2,\): index 5"):
        gt.constant([1.0, 2.0])[5]


def test_a_rule_that_cannot_be_traced_is_said_in_whole_sentences() -> None:
    @gt.custom_gradient
    def f(x: gt.Tensor) -> tuple[gt.Tensor, object]:
        return x * 2.0, lambda g: gt.constant(g.numpy() * 3.0)

    x = gt.constant(1.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.function(lambda x: f(x))(x)
    with pytest.raises(LookupError) as caught:
        tape.gradient(y, x)
    assert ".." not in str(caught.value).replace("...", "")
