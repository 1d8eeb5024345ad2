"""The engine on a cluster of two processes: collectives, a fit, and a rank that fails."""

import numpy as np
import pytest

import gradtape as gt

distributed = pytest.importorskip("distributed", reason="pip install distributed")

from gradtape_dask import DaskEngine  # noqa: E402
from gradtape_dask.ranks import DaskCommunicator, run  # noqa: E402

from gradtape.testing import check_engine  # noqa: E402


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_collectives(client):
    def collectives():  # nested, so that it is sent to the workers by value
        group = gt.distributed.group()
        x = gt.constant([1.0, float(group.rank)])
        found = [group.all_reduce(x), group.all_reduce(x, "max"), group.all_gather(x)]
        found += [group.broadcast(x, root=1), group.reduce_scatter(x)]
        return group.engine, group.rank, [y.tolist() for y in found]

    found = run(client, collectives)
    gathered = [[1.0, 0.0], [1.0, 1.0]]
    for rank, (engine, at, results) in enumerate(found):
        assert (engine, at) == ("dask", rank)
        assert results == [[2.0, 1.0], [1.0, 1.0], gathered, [1.0, 1.0], [[2.0], [1.0]][rank]]


def test_every_collective(client):
    names = {size: f"checked by {size}" for size in (1, 2, 3)}
    report = check_engine(
        DaskEngine(), connect=lambda rank, size: DaskCommunicator(names[size], rank, size)
    )
    assert not report.wrong


def test_a_model_is_fitted_on_two_ranks_as_in_one_process(client):
    def fit():
        gt.random.set_seed(0)
        x = np.linspace(-1, 1, 64, dtype="float32").reshape(32, 2)
        y = x.sum(1, keepdims=True) ** 2
        layers = [gt.layers.Dense(8, activation="relu"), gt.layers.Dense(1)]
        model = gt.layers.Sequential(layers)
        history = gt.training.fit(
            model,
            (x, y),
            loss="mse",
            epochs=3,
            batch_size=8,
            seed=0,
            verbose=False,
            distributed=gt.distributed.group(),
        )
        return history.history["loss"], [w.numpy() for w in model.variables]

    (losses, weights), other = run(client, fit)
    alone, expected = fit()
    np.testing.assert_allclose(losses, alone, rtol=1e-5)
    for here, there, single in zip(weights, other[1], expected, strict=True):
        np.testing.assert_array_equal(here, there)
        np.testing.assert_allclose(here, single, rtol=1e-4, atol=1e-6)


def test_a_rank_that_fails_ends_the_job(client):
    def failing():
        if gt.distributed.group().rank == 1:
            raise ValueError("no such file: data.npz")
        return gt.distributed.group().all_reduce(gt.constant(1.0))

    with pytest.raises((ValueError, gt.errors.DistributedError), match=r"no such file"):
        run(client, failing)


def test_the_engine_needs_a_job():
    with pytest.raises(gt.errors.BackendUnavailable, match=r"with gradtape_dask\.ranks\.run"):
        gt.distributed.init("dask")
