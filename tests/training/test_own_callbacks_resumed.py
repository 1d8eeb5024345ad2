"""Callbacks of one's own go on after an interruption as if there had been none."""

from __future__ import annotations

import importlib
import io
import queue
import random
import shelve
import threading
import warnings
from collections import UserDict, deque, namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training
from gradtape.training.runs.callback_state import Snapshot

RNG = np.random.default_rng(1)
X = RNG.normal(size=(40, 3)).astype("float32")
Y = (X[:, :1] - X[:, 1:2]).astype("float32")


class Counting(training.Callback):
    """Keeps numbers in attributes of the class, and containers that it changes in place."""

    seen = 0
    best = float("inf")

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.log = self.losses
        self.by_epoch: dict[int, tuple[float, int]] = {}
        self.kinds: set[str] = set()
        self.mean = np.zeros(2)

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        self.seen += 1
        self.best = min(self.best, logs["loss"])
        self.losses.append(logs["loss"])
        self.mean = self.mean * 0.9 + np.array([batch, logs["loss"]])

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        self.by_epoch[epoch] = (logs["loss"], self.seen)
        if epoch == 0:
            self.rows = self.by_epoch  # another name for it, made by the run
        self.log.append(float(epoch))
        self.rows[-epoch] = (0.0, len(self.losses))
        self.kinds.add("even" if epoch % 2 == 0 else "odd")
        self.last = logs["loss"]  # made by the run


class Steering(training.Callback):
    """Decides from its state what the run does."""

    def __init__(self) -> None:
        self.bad, self.lowest = 0, None

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool:
        self.bad = self.bad + 1 if self.lowest is not None and logs["loss"] > 0 else 0
        self.lowest = logs["loss"]
        self.optimizer.learning_rate = float(self.optimizer.learning_rate) * (0.5 + 0.1 * self.bad)
        return self.bad == 4


class Stated(training.Callback):
    """Says its state itself: what it holds no file could."""

    def __init__(self) -> None:
        self.window: deque[float] = deque(maxlen=3)

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        self.window.append(logs["loss"])

    def state_dict(self) -> dict[str, Any]:
        return {"window": list(self.window)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.window = deque(state["window"], maxlen=3)


class Stop(Exception):
    pass


class Cut(training.Callback):
    def __init__(self, after: int) -> None:
        self.after, self.left = after, after

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        self.left -= 1
        if self.left == 0:
            raise Stop


class Momentum(training.Optimizer):
    slots = ("velocity",)
    factor = 0.8

    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        velocity = state[0] * self.factor + gradient
        return value - settings[0] * velocity, (velocity,)


class Drift(training.metrics.Metric):
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.add(y_pred - y_true, sample_weight)


class Noisy(layers.Layer):
    """Counts its calls in training."""

    def build(self, input_shape: Any) -> None:
        self.calls = self.add_weight((), "zeros", "calls", trainable=False)
        self.scale = self.add_weight((), "ones", "scale")

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            self.calls.assign_add(1.0)
        return x * self.scale + (gt.random.normal(x.shape) * 0.1 if training else 0.0)


def run(**options: Any) -> Any:
    gt.random.set_seed(5)
    model = layers.Sequential([layers.Dense(4, activation="tanh"), Noisy(), layers.Dense(1)])
    callbacks = [Counting(), Steering(), Stated(), *options.pop("more", ())]
    optimizer = Momentum(0.05, clipnorm=1.0, weight_decay=0.01)
    history = training.fit(
        model,
        (X, Y),
        loss="mse",
        metrics=[Drift()],
        optimizer=optimizer,
        callbacks=callbacks,
        epochs=9,
        batch_size=8,
        seed=2,
        verbose=0,
        **options,
    )
    states = [
        {
            name: sorted(value) if isinstance(value, set) else value
            for name, value in vars(x).items()
            if name not in ("model", "optimizer")
        }
        for x in callbacks[:3]
    ]
    arrays = [v.numpy() for v in (*model.variables, *optimizer.variables)]
    return history.history, states, arrays


@pytest.mark.parametrize("backup", [False, True])
@pytest.mark.parametrize("after", [3, 5, 11, 19])
def test_a_resumed_run_equals_one_that_was_not_interrupted(
    after: int, backup: bool, tmp_path: Path
) -> None:
    def kept(*more: Any) -> dict[str, Any]:
        if backup:
            return {"more": (training.BackupAndRestore(tmp_path / "b", save_freq=2), *more)}
        return {"checkpoint": tmp_path / "run.h5", "save_every": 2, "resume": True, "more": more}

    expected = run()
    with pytest.raises(Stop):
        run(**kept(Cut(after)))
    found = run(**kept())
    assert found[0] == expected[0]
    assert repr(found[1]) == repr(expected[1])
    for one, two in zip(found[2], expected[2], strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_state_that_no_file_holds_gives_a_warning(tmp_path: Path) -> None:
    class Queue(training.Callback):
        def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            self.window = deque([logs["loss"]])

    with pytest.warns(UserWarning, match=r"Queue\.window \(a deque\).*state_dict") as told:
        run(checkpoint=tmp_path / "run.h5", more=(Queue(),))
    assert len(told) == 1
    run(more=(Queue(),))  # nothing is stored


class Meter:
    """An object of one's own."""

    def __init__(self) -> None:
        self.total = 0.0


class Slotted:
    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0.0


class Hidden:
    __slots__ = "__total"

    def __init__(self) -> None:
        self.__total = 0.0

    def add(self) -> None:
        self.__total += 1.0


Pair = namedtuple("Pair", "steps last")


def drawn(generator: Any) -> None:
    generator.random()


def added(x: Any) -> None:
    x.total += 1.0


#: Values that change in place, and how.
CHANGING: dict[str, tuple[Any, Any]] = {
    "an object": (Meter, added),
    "an object with slots": (Slotted, added),
    "an object with a hidden slot": (Hidden, Hidden.add),
    "objects in a list": (lambda: [Meter()], lambda x: added(x[0])),
    "an object in itself": (lambda: around(Meter()), added),
    "a generator of NumPy": (lambda: np.random.default_rng(0), drawn),
    "a generator of Python": (lambda: random.Random(0), drawn),
    "an iterator": (lambda: iter(range(100)), next),
    "a text in memory": (io.StringIO, lambda x: x.write(".")),
    "an array of objects": (lambda: np.array([None, 0]), lambda x: x.__setitem__(1, x[1] + 1)),
    "a queue": (deque, lambda x: x.append(1)),
    "a variable": (lambda: gt.Variable(0.0), lambda x: x.assign_add(1.0)),
    "a module": (lambda: kept_by(gt.Variable(0.0)), lambda x: x.inside.assign_add(1.0)),
}


def kept_by(variable: gt.Variable) -> gt.Module:
    module = gt.Module()
    module.inside = variable
    return module


def around(x: Any) -> Any:
    x.itself = x
    return x


@pytest.mark.parametrize("what", CHANGING)
def test_a_value_that_a_run_changes_in_place_gives_a_warning(what: str, tmp_path: Path) -> None:
    make, change = CHANGING[what]

    class Holding(training.Callback):
        def __init__(self) -> None:
            self.held = make()
            self.data = make()  # stays as it is

        def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            change(self.held)

    with pytest.warns(UserWarning, match=r"Holding\.held \(a.*state_dict") as told:
        run(checkpoint=tmp_path / "run.h5", more=(Holding(),))
    assert len(told) == 1


def test_a_callback_of_an_installed_package_changes_its_own_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "acme_meters.py").write_text(
        "import gradtape as gt\n"
        "class Meter:\n"
        "    total = 0.0\n"
        "class Metering(gt.training.Callback):\n"
        "    def __init__(self):\n"
        "        self.meter = Meter()\n"
        "    def on_train_batch_end(self, batch, logs):\n"
        "        self.meter.total += 1.0\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    made = importlib.import_module("acme_meters").Metering()
    with pytest.warns(UserWarning, match=r"Metering\.meter \(a Meter\).*state_dict"):
        run(checkpoint=tmp_path / "run.h5", more=(made,))


def test_what_a_checkpoint_keeps_anyway_and_tools_give_no_warning(tmp_path: Path) -> None:
    class Looking(training.Callback):
        def __init__(self, other: Any) -> None:
            self.lock, self.generated, self.span = threading.Lock(), (i for i in [0]), range(10**12)
            self.other, self.me, self.pair = other, self, Pair(1, 2)

        def on_train_begin(self) -> None:
            self.net, self.parts = self.model, [self.model.layers, self.optimizer]
            self.kernel = self.model.layers[-1]

        def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            self.pair, self.kernel = Pair(1, 2), self.model.layers[-1].kernel

    run(checkpoint=tmp_path / "run.h5", more=(Looking(Counting()), Looking(Cut(1000))))


def closed_shelf(path: Path) -> Any:
    shelf = shelve.open(str(path / "shelf"))  # noqa: SIM115
    shelf.close()
    return shelf


def submitted(pool: Any) -> None:
    pool.submit(int).result()


#: Tools of one run, and how they change.
TOOLS: dict[str, tuple[Any, Any]] = {
    "a pool of threads": (lambda path: ThreadPoolExecutor(1), submitted),
    "a thread": (lambda path: threading.Thread(target=int), lambda x: x.ident or x.start()),
    "an event": (lambda path: threading.Event(), lambda x: x.set()),
    "a queue between threads": (lambda path: queue.Queue(), lambda x: x.put(1)),
    "a temporary file": (lambda path: TemporaryFile("w"), lambda x: x.write(".")),  # noqa: SIM115
    "a named file": (lambda path: NamedTemporaryFile("w", dir=path), lambda x: x.write(".")),  # noqa: SIM115
    "a shelf that is closed": (closed_shelf, lambda x: None),
}


@pytest.mark.parametrize("what", TOOLS)
def test_a_tool_of_one_run_gives_no_warning(what: str, tmp_path: Path) -> None:
    make, change = TOOLS[what]
    callback = training.Callback()
    vars(callback)["tool"] = tool = make(tmp_path)
    begun = Snapshot(callback, whole=True)
    change(tool)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert begun.changed(callback) == {}
    getattr(tool, "close", getattr(tool, "shutdown", int))()


ARRAY = np.zeros(2)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([ARRAY, 1, 23], [ARRAY, 12, 3]),
        ([[ARRAY, 1], 2], [[ARRAY, 1, 2]]),
        ({"a": ARRAY, "b": ARRAY}, {"a": ARRAY}),
        (UserDict(a=1), UserDict(a=2)),
        (deque([1, 2]), deque([1, 3])),
    ],
)
def test_a_change_within_a_container_is_noticed(before: Any, after: Any) -> None:
    callback = training.Callback()
    vars(callback)["held"] = before
    begun = Snapshot(callback, whole=True)
    assert begun.changed(callback) == {}
    vars(callback)["held"] = after
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert "held" in begun.changed(callback) or len(told) == 1


def test_ranges_are_not_counted() -> None:
    callback = training.Callback()
    vars(callback)["places"] = range(10**12)
    assert Snapshot(callback, whole=True).changed(callback) == {}


def test_what_a_run_leaves_alone_is_not_stored(tmp_path: Path) -> None:
    class Holding(training.Callback):
        def __init__(self) -> None:
            self.data, self.model_of, self.weights = np.ones(100_000), layers.Dense(1), []

        def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
            self.weights = [v.numpy() for v in self.model.variables]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(checkpoint=tmp_path / "run.h5", more=(Holding(),))
    assert (tmp_path / "run.h5").stat().st_size < 100_000
