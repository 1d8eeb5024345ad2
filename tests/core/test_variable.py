"""``Variable``: assignment, what it refuses, and what was read before."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import gradtape as gt


def test_the_assign_family() -> None:
    v = gt.Variable([1.0, 2.0])
    assert v.assign([3.0, 4.0]) is v
    np.testing.assert_array_equal(v, [3.0, 4.0])
    v.assign_add([1.0, 1.0]).assign_sub(gt.constant([0.0, 2.0]))
    np.testing.assert_array_equal(v, [4.0, 3.0])
    v.assign(np.array([1.0, 1.0]))  # float64 narrows
    assert v.dtype == np.float32
    v.assign([5, 6])
    np.testing.assert_array_equal(v, [5.0, 6.0])
    other = gt.Variable([7.0, 8.0])
    v.assign(other)
    other.assign([0.0, 0.0])
    np.testing.assert_array_equal(v, [7.0, 8.0])


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_a_refused_assignment_leaves_the_variable_unchanged(method: str) -> None:
    v = gt.Variable([1.0, 2.0], name="weights")
    with pytest.raises(ValueError, match=r"weights.*\(2,\).*\(2, 2\)|\(2,\).*\(3,\)"):
        getattr(v, method)([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(TypeError, match=r"weights.*complex64"):
        getattr(v, method)([1j, 2j])
    with pytest.raises(TypeError):
        getattr(v, method)("text")
    np.testing.assert_array_equal(v, [1.0, 2.0])


def test_floats_do_not_go_into_an_integer_variable() -> None:
    v = gt.Variable(3, name="count")
    with pytest.raises(TypeError, match=r"count.*int64.*float32.*astype"):
        v.assign(2.5)
    assert v.assign_add(1).numpy() == 4


def test_assign_does_not_broadcast() -> None:
    v = gt.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match="shape"):
        v.assign(0.0)


def test_names_initial_values_and_dtypes() -> None:
    assert gt.Variable(1.0).name == "Variable"
    v = gt.Variable(lambda: [1, 2], name="w", dtype="float64")
    assert (v.name, v.dtype, v.shape, v.ndim, v.size) == ("w", np.float64, (2,), 1, 2)
    a = np.array([1.0, 2.0])
    v = gt.Variable(a)
    a[0] = 9.0
    np.testing.assert_array_equal(v, [1.0, 2.0])
    with pytest.raises(TypeError):
        gt.Variable(None)


def test_integer_variables_never_train() -> None:
    for v in (gt.Variable(1), gt.Variable(True), gt.Variable(1.0, trainable=False)):
        assert v.trainable is False
        with gt.GradientTape() as tape:
            y = v * 2.0
        assert tape.gradient(y, v) is None
        assert tape.watched_variables() == ()


def test_a_value_that_was_read_stays() -> None:
    v = gt.Variable(2.0)
    before = v.value
    handle = v.read_value()
    v.assign(5.0)
    assert before.numpy() == 2.0
    assert handle.numpy() == 2.0
    assert v.numpy() == 5.0


def test_gradients_use_the_value_that_was_read() -> None:
    v = gt.Variable(2.0)
    with gt.GradientTape() as tape:
        y = v * v
        v.assign(100.0)
    assert tape.gradient(y, v).numpy() == 4.0


def test_a_value_read_is_a_handle_on_the_variable() -> None:
    v = gt.Variable(3.0)
    with gt.GradientTape(persistent=True) as tape:
        value = v.value
        y = value * value
    assert tape.gradient(y, v).numpy() == 6.0
    assert tape.gradient(y, value).numpy() == 6.0


def test_watching_a_variable_by_hand() -> None:
    v, fixed = gt.Variable(3.0), gt.Variable(2.0, trainable=False)
    with gt.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([fixed, v])
        y = v * fixed
    assert [w is u for w, u in zip(tape.watched_variables(), (v, fixed), strict=True)] == [True] * 2
    assert [g.numpy() for g in tape.gradient(y, [v, fixed])] == [2.0, 3.0]


def test_python_protocols() -> None:
    v = gt.Variable(2.0)
    assert (float(v), int(v), bool(v), v.item()) == (2.0, 2, True, 2.0)
    assert [10, 20, 30][gt.Variable(1)] == 20
    assert f"{v:.2f}" == "2.00"
    w = gt.Variable([1.0, 2.0])
    assert len(w) == 2
    assert [x.item() for x in w] == [1.0, 2.0]
    assert np.asarray(w, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        w.numpy()[0] = 1.0
    assert len({v, w}) == 2


def test_repr() -> None:
    assert repr(gt.Variable(2.0, name="a")) == "<Variable 'a' shape=() dtype=float32 value=2.>"
    assert "trainable=False" in repr(gt.Variable(2.0, trainable=False))
    assert "\n" in repr(gt.Variable([[1.0], [2.0]]))


def test_a_deep_copy_is_a_variable_of_its_own() -> None:
    v = gt.Variable([1.0], name="v", trainable=False)
    both = copy.deepcopy([v, v])
    assert both[0] is both[1]
    assert both[0] is not v
    assert (both[0].name, both[0].trainable) == ("v", False)
    both[0].assign([5.0])
    np.testing.assert_array_equal(v, [1.0])
    with gt.GradientTape() as tape:
        tape.watch(both[0])
        y = both[0] * 2.0
    assert tape.gradient(y, v) is None


def test_a_shallow_copy_is_a_variable_of_its_own() -> None:
    v = gt.Variable([1.0], name="v", trainable=False)
    twin = copy.copy(v)
    twin.assign([5.0])
    assert (v.item(), twin.item(), twin.name, twin.trainable) == (1.0, 5.0, "v", False)
    assert (twin.shape, twin.dtype) == (v.shape, v.dtype)
    assert len({v, twin}) == 2
    with gt.GradientTape() as tape:
        tape.watch(twin)
        y = twin * 2.0
    assert tape.gradient(y, v) is None


def test_a_copied_variable_of_a_subclass_keeps_its_attributes() -> None:
    class Tagged(gt.Variable):
        pass

    v = Tagged(1.0)
    v.tags = ["a"]
    shallow, deep = copy.copy(v), copy.deepcopy(v)
    v.tags.append("b")
    assert (type(shallow), shallow.tags) == (Tagged, ["a", "b"])
    assert (type(deep), deep.tags) == (Tagged, ["a"])


def test_init_scope_creates_real_state_inside_a_trace() -> None:
    made = []

    @gt.function
    def f(x):
        if not made:
            with gt.init_scope():
                made.append(gt.Variable(gt.constant(2.0) * 3.0))
        return x * made[0]

    assert f(gt.constant(2.0)).numpy() == 12.0


def test_a_traced_value_cannot_start_a_variable() -> None:
    with pytest.raises(TypeError, match="initial value"):
        gt.function(lambda x: gt.Variable(x * 2.0) * 1.0)(gt.constant(1.0))


def test_a_python_number_is_assigned_in_the_variables_own_precision() -> None:
    v = gt.Variable(1.0, dtype="float64")
    assert v.assign(0.1).item() == 0.1
    assert v.assign_add(0.2).item() == 0.1 + 0.2
    assert v.assign_sub(0.7).item() == 0.1 + 0.2 - 0.7


@pytest.mark.parametrize("given", ["float64", "weight", np.float32, None, 1])
def test_a_dtype_or_a_name_in_the_place_of_trainable_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"trainable is True or False, got .*name=.*, dtype="):
        gt.Variable([1.0], given)
    v = gt.Variable([1.0])
    with pytest.raises(TypeError, match="trainable is True or False"):
        v.trainable = given
    assert v.trainable is True


def test_assigning_an_item_is_answered_with_what_to_write() -> None:
    v = gt.Variable([1.0, 2.0])
    for x in (v, v.value):
        with pytest.raises(TypeError, match=r"x\.at\[index\]\.set\(values\)"):
            x[0] = 3.0  # type: ignore[index]
    v.assign(v.at[0].set(3.0))
    assert v.tolist() == [3.0, 2.0]


# -- in-place operators ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("symbol", "advice"),
    [
        ("-", "v.assign_sub(...)"),
        ("+", "v.assign_add(...)"),
        ("*", "v.assign(v * ...)"),
        ("/", "v.assign(v / ...)"),
        ("**", "v.assign(v ** ...)"),
    ],
)
def test_an_in_place_operator_warns_that_the_variable_keeps_its_value(
    symbol: str, advice: str
) -> None:
    v = gt.Variable([4.0, 2.0], name="weight")
    names: dict[str, Any] = {"p": v}
    with pytest.warns(UserWarning, match="variable 'weight' keeps its value") as caught:
        exec(f"p {symbol}= 2.0", names)
    assert advice in str(caught[0].message)
    assert type(names["p"]) is gt.Tensor
    np.testing.assert_array_equal(names["p"], eval(f"[4.0 {symbol} 2.0, 2.0 {symbol} 2.0]"))
    np.testing.assert_array_equal(v, [4.0, 2.0])


def test_an_update_by_hand_warns_in_a_trace_too() -> None:
    v = gt.Variable(4.0)

    @gt.function
    def step() -> gt.Tensor:
        with gt.GradientTape() as tape:
            loss = v * v
        p: Any = v
        p -= 0.5 * tape.gradient(loss, v)
        return p

    with pytest.warns(UserWarning, match="keeps its value"):
        assert step().item() == 0.0


class Shifted(gt.Module):
    """Computes in place in its call."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = gt.Variable([1.0, 2.0])

    def __call__(self, x: Any) -> Any:
        y: Any = self.shift
        y *= 2.0
        return x + y


def under_a_tape(v: Any) -> Any:
    with gt.GradientTape():
        v -= 1.0
    return v


def of_a_batch(v: Any) -> Any:
    v += gt.ones((3, 2))
    return v


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "formula", [under_a_tape, of_a_batch, lambda v: Shifted()(v), lambda v: np.add(v, 1.0)]
)
def test_a_formula_with_in_place_operators_does_not_warn(formula: Any) -> None:
    assert type(formula(gt.Variable([1.0, 2.0]))) is gt.Tensor
