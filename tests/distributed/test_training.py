"""``fit(distributed=group)`` on several ranks, against ``fit`` of one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt

#: Of the loss after a step, relative.
CLOSE = 1e-6
#: Models that compute in half precision, whose sums are rounded to 11 bits.
HALF = {"half precision": 1e-3}
X, Y = np.ones((8, 2), "float32"), np.arange(8) % 2


@pytest.fixture(params=[2, 4], ids=lambda n: f"{n} ranks")
def found(request: Any, found_by: Any) -> dict[str, Any]:
    return found_by(request.param)


def test_every_kind_of_training_is_that_of_one_process(found_by: Any) -> None:
    cases = found_by(2)["training"]
    assert len(cases) > 15
    for case, what in cases.items():
        assert what["alike"], case
        assert what["steps"] < HALF.get(case, CLOSE), case
        assert what["history"] < HALF.get(case, CLOSE), case
        assert what["weights"] < max(1e-5, 10 * HALF.get(case, 0.0)), case


@pytest.mark.parametrize("ranks", [2, 4])
def test_digits_have_the_loss_curve_of_one_process(found_by: Any, ranks: int) -> None:
    alone = found_by(1)["curves"]
    for case, what in found_by(ranks)["curves"].items():
        known = alone[case]
        assert what["alike"], case
        off = np.abs(np.divide(what["steps"], known["steps"]) - 1)
        assert len(off) == 60
        assert off[:12].max() < 1e-6, case
        assert off.max() < 1e-5, case
        for name, values in known["history"].items():
            np.testing.assert_allclose(what["history"][name], values, rtol=1e-5)
        np.testing.assert_allclose(what["weights"], known["weights"], atol=1e-4)
        assert what["history"]["val_accuracy"][-1] > 0.7


def test_shards_are_batches_of_each_ranks_own(found: Any) -> None:
    assert found["shards"]["steps"] < CLOSE
    assert found["shards"]["warned"] == [
        f"fit: rank 0 of {len(found['shards']['wrong'])} had more batches of data than the others. "
        "These are skipped: an epoch ends where the shortest shard ends"
    ]
    assert all("use shard(group.size, group.rank)" in text for text in found["shards"]["wrong"])


def test_ctrl_c_on_one_rank_ends_all_of_them_at_one_batch(found: Any) -> None:
    what = found["interrupted"]
    assert what["interrupted"]
    assert len(set(what["steps"])) == 1
    assert what["steps"][0] in (3, 4)  # of 7: the next message tells the others
    assert what["rest"] == 14  # those that the checkpoint knows of included
    assert what["bits"]


def test_callbacks_decide_for_all_and_write_once(found: Any) -> None:
    what = found["decisions"]
    assert what["epochs"] == 2
    assert what["alike"]
    assert set(what["own"]) == {3}
    assert what["lines"] == 3
    assert what["files"] == [
        *("alone.h5", "best-1.h5", "best-2.h5", "log.csv", "note-of-0", "written.csv")
    ]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("other arrays", "different data from rank 0; pass the same arrays on each rank"),
        ("other batches", "different batches from rank 0; each rank must iterate over the same"),
        ("other model", "rank 0 called fit to train kernel float32[8, 5]"),
        ("other code", "ranks run different code, from op"),
        ("other layer", "layer 2 of the model is Activation({'activation': 'tanh'"),
        ("other rate", "optimizer is SGD({'learning_rate': 0.1"),
        ("other method", "rank 0 called evaluate; rank"),
        ("other arguments", "arguments differ between ranks: batch_size is "),
        ("one validates", "between ranks: validation_data is 'given' on rank 0, None on"),
        ("other loss", "between ranks: loss is 'mse' on rank 0, mean_squared_error on"),
        (
            "other measure",
            "evaluate: arguments differ between ranks: metrics is ['accuracy'] on rank 0, [] on",
        ),
        ("a callback", "they diverged. Causes are a callback that sets a different value"),
        ("came apart", "different weights from rank 0; they diverged"),
        ("no group", "distributed must be the group from gradtape.distributed.init(), got True"),
        ("unseen", "use a folder for checkpoints that all ranks can read"),
    ],
)
def test_ranks_that_differ_are_named_on_all_of_them(found: Any, case: str, words: str) -> None:
    assert all(words in text for text in found["unlike"][case]), found["unlike"][case]
    assert found["unlike"]["files"] == ["0.h5"]  # none of weights that came apart


def test_a_loss_that_is_not_finite_names_the_rank(found: Any) -> None:
    told = found["unlike"]["not finite"]
    last = len(told) - 1
    assert all(f"fit: the loss is not finite on rank {last} of {last + 1}" in x for x in told)
    assert all("The model is restored to the beginning of this epoch" in text for text in told)
    assert "In this batch x holds NaN or infinity" in told[-1]


def test_moving_statistics_of_each_ranks_own_examples_are_averaged(found: Any) -> None:
    what = found["statistics"]
    assert what["alike"]
    assert what["mean"] < 1e-6
    assert what["variance"] < 1e-6
    assert what["own"] < 1e-6  # of a layer that is not gradtape's


def test_evaluate_measures_all_examples(found: Any) -> None:
    assert found["measuring"]["apart"] < CLOSE


def test_predictions_of_all_ranks_are_in_order(found: Any) -> None:
    what = found["predicting"]
    ranks = len(what["told"]["a shard"])
    assert what["lengths"] == {"arrays": 203, "pipeline": 203, "few": ranks - 1}
    assert max(what["apart"].values()) < CLOSE
    assert what["alike"]
    assert what["several"]
    words = {
        "a shard": "ValueError: predict: x is shard ",
        "other data": "different batches from rank 0; each rank passes the same data",
        "more batches": "predict: arguments differ between ranks: steps is 2 on rank 0, ",
        "other weights": "different variables from rank 0; train it with distributed=group",
    }
    for case, text in words.items():
        assert all(text in x for x in what["told"][case]), what["told"][case]


@pytest.mark.parametrize("kind", ["arrays", "pipeline"])
def test_runs_go_on_from_a_checkpoint_with_any_number_of_ranks(found_by: Any, kind: str) -> None:
    begun = found_by(2)["begun"][kind]
    assert begun == {"interrupted": True, "steps": begun["steps"], "alike": True}
    assert 10 <= begun["steps"] <= 11  # 7 of the first epoch
    name = f"resumed_{kind}"
    rests = {2: found_by(2, name), 4: found_by(4)} if kind == "arrays" else {1: found_by(1)}
    for ranks, found in rests.items():
        rest = found[name]
        assert rest["steps"] == 21  # those that the checkpoint knows of included
        assert rest["alike"]
        assert rest["losses"] < CLOSE
        assert rest["epochs"] < CLOSE
        assert rest["bits"] is rest["history"] is (ranks == 2)


def test_a_group_of_one_trains_as_no_group() -> None:
    histories = []
    for distributed in (None, gt.distributed.group()):
        gt.random.set_seed(1)
        model = gt.layers.Sequential([gt.layers.Dense(2)])
        run_of = gt.training.fit(model, (X, Y), seed=0, verbose=False, distributed=distributed)
        histories.append(run_of.history)
    assert histories[0] == histories[1]
    with pytest.raises(TypeError, match="evaluate: distributed must be the group from"):
        gt.training.evaluate(model, (X, Y), distributed=2)
