"""Random small models on random kinds of data: all ways to train them come to the same.

``FIT_FUZZ=1000`` beside pytest tries so many.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training

COUNT = int(os.environ.get("FIT_FUZZ", "12"))


class Case:
    """A model, data and settings, drawn with a seed."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        numbers = np.random.default_rng(seed)
        self.seed = seed
        self.count, self.batch_size = draw.randint(3, 14), draw.randint(1, 6)
        self.inputs = draw.choice(["one", "list", "dict"])
        self.outputs = draw.choice(["one", "one", "list", "dict"])
        self.hidden = draw.choice(["none", "dense", "dropout", "norm", "noise"])
        self.loss = draw.choice(["mse", "mae", "object", "own"])
        self.optimizer = draw.choice(["sgd", "adam", "rmsprop"])
        self.weights, self.validation = draw.random() < 0.4, draw.choice(["none", "data", "split"])
        self.metrics = draw.random() < 0.5
        self.regular = draw.random() < 0.3
        self.epochs = draw.randint(1, 3)
        self.steps = draw.choice([None, None, draw.randint(1, 4)])
        self.x = {k: numbers.normal(size=(self.count, n)).astype("float32") for k, n in XS}
        self.y = {k: numbers.normal(size=(self.count, n)).astype("float32") for k, n in YS}
        self.w = numbers.uniform(0.1, 2, self.count).astype("float32")

    def parts(self, rows: Any = slice(None)) -> tuple[Any, ...]:
        x, y = self._packed(self.x, self.inputs, rows), self._packed(self.y, self.outputs, rows)
        return (x, y, self.w[rows]) if self.weights else (x, y)

    @staticmethod
    def _packed(arrays: dict[str, Any], kind: str, rows: Any) -> Any:
        if kind == "one":
            return next(iter(arrays.values()))[rows]
        found = {name: array[rows] for name, array in arrays.items()}
        return found if kind == "dict" else list(found.values())

    def batches(self) -> Iterator[Any]:
        for start in range(0, self.count, self.batch_size):
            yield self.parts(slice(start, start + self.batch_size))

    def model(self) -> Any:
        gt.random.set_seed(self.seed)
        ins = {name: gt.Input((n,), name=name) for name, n in XS}
        if self.inputs == "one":
            ins = {"p": ins["p"]}
        joined = layers.Concatenate()(list(ins.values())) if len(ins) > 1 else ins["p"]
        made: dict[str, Callable[[], Any]] = {
            "dense": lambda: layers.Dense(4, "tanh"),
            "dropout": lambda: layers.Dropout(0.4),
            "norm": lambda: layers.BatchNorm(),
            "noise": lambda: layers.GaussianNoise(0.1),
        }
        h = made[self.hidden]()(joined) if self.hidden != "none" else joined
        rule = {"kernel_regularizer": "l2"} if self.regular else {}
        outs = {name: layers.Dense(n, name=name, **rule)(h) for name, n in YS}
        if self.outputs == "one":
            outs = {"a": outs["a"]}
        given = ins if self.inputs == "dict" else list(ins.values())
        return gt.Model(
            given if self.inputs != "one" else ins["p"],
            outs
            if self.outputs == "dict"
            else list(outs.values())
            if self.outputs == "list"
            else outs["a"],
        )

    def fit(
        self, data: Any, measure: bool = False, **options: Any
    ) -> tuple[dict[str, list[float]], list[Any]]:
        """Return what a training, or a measuring, gave: values, and weights."""
        losses: dict[str, Any] = {
            "object": training.losses.MeanSquaredError(),
            "own": lambda y, p: gt.mean(gt.abs(y - p) ** 1.5, axis=-1),
        }
        metrics: Any = ["mae", training.metrics.MeanSquaredError()] if self.metrics else None
        if metrics and self.outputs != "one":
            metrics = {"a": metrics} if self.outputs == "dict" else [metrics, None]
        goals: dict[str, Any] = {"loss": losses.get(self.loss, self.loss), "metrics": metrics}
        net = self.model()
        if measure:
            goals |= {"batch_size": self.batch_size, "compile": False}
            found = training.evaluate(net, data, **{**goals, **options})
            return {name: [value] for name, value in found.items()}, []
        settings: dict[str, Any] = {
            **goals,
            "optimizer": self.optimizer,
            "batch_size": self.batch_size,
            "epochs": self.epochs,
            "steps_per_epoch": self.steps,
            "shuffle": False,
            "seed": self.seed,
            "verbose": 0,
            "compile": False,
        }
        if self.validation == "data":
            settings["validation_data"] = self.parts(slice(0, 3))
        run = training.fit(net, data, **{**settings, **options})
        return run.history, [v.numpy() for v in net.variables]


XS, YS = (("p", 3), ("q", 2)), (("a", 2), ("b", 1))


def forms(case: Case) -> dict[str, Callable[[], Any]]:
    """Return what else the same batches may come in."""

    def tuples(part: Any) -> Any:
        return tuple(part) if isinstance(part, list) else part

    sliced = tuple(map(tuples, case.parts()))
    listed = case.inputs == "list" or case.outputs == "list"
    found = {
        "list": lambda: list(case.batches()),
        "dataset of batches": lambda: gt.data.Dataset.from_generator(case.batches).prefetch(2),
        "own iterable": lambda: Again(case),
    }
    if not listed:
        found["dataset"] = lambda: gt.data.Dataset.from_tensor_slices(sliced).batch(case.batch_size)
        found["cached"] = lambda: (
            gt.data.Dataset.from_tensor_slices(sliced).cache().batch(case.batch_size)
        )
        try:
            import torch
        except ImportError:
            return found
        rows = [
            {i: torch.from_numpy(np.array(x)) for i, x in enumerate(part.values())}
            if isinstance(part, dict)
            else torch.from_numpy(part)
            for part in case.parts()
        ]
        if not any(isinstance(part, dict) for part in rows):
            found["torch"] = lambda: torch.utils.data.DataLoader(
                torch.utils.data.TensorDataset(*rows), batch_size=case.batch_size
            )
    if case.epochs == 1 and case.steps is None:
        found["iterator"] = lambda: iter(list(case.batches()))
    return found


class Again:
    def __init__(self, case: Case) -> None:
        self.case = case

    def __iter__(self) -> Iterator[Any]:
        return self.case.batches()


def leaves(outputs: Any) -> list[Any]:
    if isinstance(outputs, dict):
        return [outputs[key] for key in sorted(outputs)]
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def check(seed: int) -> None:
    case = Case(seed)
    rest = {"validation_split": 0.34} if case.validation == "split" else {}
    whole = case.fit(case.parts(), **rest)
    same(whole, case.fit(case.parts(), **rest), exact=True)
    same(whole, case.fit(case.parts(), compile=True, **rest))
    orders = [case.fit(case.parts(), shuffle=True, **rest) for _ in range(2)]
    same(*orders, exact=True)
    same(orders[0], case.fit(case.parts(), shuffle=True, compile=True, **rest))
    measured = case.fit(case.parts(), measure=True)
    same(measured, case.fit(case.parts(), measure=True, compile=True))
    for name, make in forms(case).items():
        same(measured, case.fit(make(), measure=True), exact=True, what=name)
    net, x = case.model(), case.parts()[0]
    out = {k: training.predict(net, x, batch_size=3, compile=k) for k in (False, True)}
    for a, b, c in zip(*map(leaves, (out[False], out[True], net(x))), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(a.numpy(), c.numpy(), rtol=1e-5, atol=1e-6)
    if rest:
        return
    for name, make in forms(case).items():
        same(whole, case.fit(make()), exact=True, what=name)


def same(one: Any, two: Any, exact: bool = False, what: str = "") -> None:
    assert list(one[0]) == list(two[0])
    for name, values in one[0].items():
        tolerance = {"rtol": 0.0} if exact else {"rtol": 2e-4, "atol": 1e-5}
        np.testing.assert_allclose(values, two[0][name], err_msg=f"{what} {name}", **tolerance)
    for a, b in zip(one[1], two[1], strict=True):
        if exact:
            np.testing.assert_array_equal(a, b, err_msg=what)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=what)


@pytest.mark.parametrize("seed", range(COUNT))
def test_all_ways_to_train_come_to_the_same(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(seed)
