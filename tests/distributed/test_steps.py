"""Collectives and data-parallel steps on several ranks, against one process on the whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt

RANKS = (2, 4)
#: What summing in another order may change, in float32 after four steps.
CLOSE = 5e-7


@pytest.fixture(params=RANKS, ids=lambda n: f"{n} ranks")
def found(request: Any, found_by: Any) -> dict[str, Any]:
    return found_by(request.param)


def test_collectives_give_values_tangents_and_batches(found: Any) -> None:
    assert found["collectives"].keys() >= {"sum", "gather", "scatter", "broadcast", "average"}
    assert max(found["collectives"].values()) < 1e-14


def test_collectives_keep_dtypes_and_shapes(found: Any) -> None:
    assert found["dtypes"] == []


def test_gradients_of_collectives_are_those_of_the_sum_of_all_ranks_targets(found: Any) -> None:
    assert max(found["derivatives"].values()) < 1e-8


def test_steps_are_those_of_one_process(found: Any) -> None:
    assert len(found["data_parallel"]) == 10
    for case, what in found["data_parallel"].items():
        assert what["alike"], case
        assert what["losses"] < CLOSE, case
        assert what["weights"] < 2 * CLOSE, case


def test_large_gradients_go_in_buckets_while_the_backward_pass_goes_on(found: Any) -> None:
    assert len(found["buckets"]) == 5
    assert all(found["buckets"].values()), found["buckets"]


def test_results_that_somebody_holds_stay(found: Any) -> None:
    assert found["held_results"]


def test_functions_that_were_traced_before_reduce_in_a_step(found: Any) -> None:
    assert found["inner_functions"]


def test_random_numbers_are_each_ranks_rows_of_the_whole_batchs(found: Any) -> None:
    assert found["random_numbers"] == []


def test_batch_norm_takes_statistics_of_all_ranks(found: Any) -> None:
    assert len(found["batch_norm"]) == 6
    for case, what in found["batch_norm"].items():
        assert what["alike"], case
        assert what["losses"] < 1e-6, case
        assert what["weights"] < 1e-5, case


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            "vector",
            "the target must be a scalar, the mean over this rank's examples; got shape (2,)",
        ),
        ("mixture", "Call gradient() once for each"),
        ("jacobian", "this would be the Jacobian of this rank's part"),
        ("matrix", "floating tensors of shape (); got shape (2, 2)"),
        ("python", "got 1.0"),
        ("integer", "got shape () and dtype int64"),
    ],
)
@pytest.mark.parametrize("compiled", [True, False])
def test_what_a_step_cannot_mean_is_refused(
    found: Any, case: str, words: str, compiled: bool
) -> None:
    told = found["refusals"][f"{case}, compile={compiled}"]
    assert all(text.startswith("TypeError: ") and words in text for text in told), told


@pytest.mark.parametrize("compiled", [True, False])
def test_a_loss_that_is_not_finite_is_told_to_every_rank(found: Any, compiled: bool) -> None:
    told = found["refusals"][f"not finite, compile={compiled}"]
    last = len(told) - 1
    assert all(f"the loss is not finite on rank {last} of {last + 1}" in text for text in told)
    assert "here it is inf" in told[-1]
    assert len(set(told[:-1])) == 1  # printed once for all of them
    assert all(text.startswith("FloatingPointError: data_parallel: ") for text in told)
    assert all("The optimizer has taken no step" in text for text in told)


@pytest.mark.parametrize("compiled", [True, False])
def test_variables_that_begin_unlike_are_refused(found: Any, compiled: bool) -> None:
    told = found["refusals"][f"unlike, compile={compiled}"]
    assert all("DistributedError: data_parallel: rank" in text for text in told)
    assert all("gt.distributed.broadcast_variables(model)" in text for text in told)


def test_a_rank_without_examples_is_named(found: Any) -> None:
    told = found["refusals"]["empty"]
    assert all(f"rank 0 of {len(told)} got a batch without examples" in text for text in told)


@pytest.mark.parametrize("size", [1, 1000])
def test_a_rank_that_alone_traces_other_messages_is_refused(found: Any, size: int) -> None:
    told = found["refusals"][f"traced again, {size}"]
    assert "was traced again, for arrays of another shape or dtype" in told[-1]
    assert set(told[:-1]) == {"nothing"}


@pytest.mark.parametrize("size", [1, 1000])
def test_ranks_that_give_other_values_of_python_are_named(found: Any, size: int) -> None:
    told = found["refusals"][f"another flag, {size}"]
    assert all(" with these Python arguments: False; rank" in x for x in told)


def test_a_step_in_a_step_is_refused(found: Any) -> None:
    assert all("TraceError: data_parallel: mean" in text for text in found["refusals"]["nested"])


def test_the_second_order_of_a_sum_is_refused(found: Any) -> None:
    told = found["refusals"]["second order of a sum"]
    assert all("summed once for each rank" in text for text in told)


def test_variables_are_broadcast(found: Any) -> None:
    same, bias, told = found["variables"]
    assert same
    assert bias == [len(told) - 1.0] * 3
    assert all("rank 1 of" in text and "different variables" in text for text in told)


def test_one_process_does_the_same_alone(found_by: Any) -> None:
    found = found_by(1)
    assert all(what["losses"] == 0.0 for what in found["data_parallel"].values())


def test_a_group_of_one_averages_nothing() -> None:
    w = gt.Variable(2.0)

    def step(x: Any) -> Any:
        with gt.GradientTape() as tape:
            loss = gt.mean(w * x)
        return loss, tape.gradient(loss, w)

    found = gt.distributed.group().data_parallel(step)(gt.constant([1.0, 3.0]))
    assert [x.item() for x in found] == [4.0, 2.0]


def test_the_average_of_one_rank_divides_by_its_weight() -> None:
    average = gt.registry().ops["average_over_ranks"]
    assert [x.tolist() for x in average(0.5, [1.0, 2.0], [[3.0]])] == [[2.0, 4.0], [[6.0]]]
    assert [x.tolist() for x in average(0.5, [1.0], mean=False)] == [[1.0]]


def test_a_loss_that_is_not_finite_is_an_error_alone_too() -> None:
    average = gt.registry().ops["average_over_ranks"]
    assert np.isnan(average(1.0, np.nan, 1.0)[0].item())
    with pytest.raises(FloatingPointError, match=r"^data_parallel: the loss is nan; a smaller"):
        average(1.0, np.nan, 1.0, checked=1)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"reduction": "max"}, ValueError, "reduction must be 'mean' or 'sum', got 'max'"),
        ({"outputs": "sum"}, ValueError, "outputs must be 'mean' or 'local', got 'sum'"),
        ({"compile": "auto"}, TypeError, "compile must be True or False, got 'auto'"),
        ({"timeout": 0}, ValueError, "timeout must be a positive number of seconds, got 0"),
    ],
)
def test_arguments_are_checked(options: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        gt.distributed.group().data_parallel(lambda x: x, **options)


def test_a_step_is_a_function() -> None:
    group = gt.distributed.group()
    with pytest.raises(TypeError, match="the step must be a function, got 3"):
        group.data_parallel(3)
    with pytest.raises(TypeError, match="already data-parallel"):
        group.data_parallel(group.data_parallel(lambda x: x))
