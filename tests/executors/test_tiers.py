"""The default executor's plans change to compiled loops while a program runs; results stay."""

from __future__ import annotations

import gc
import importlib.util
import os
import random
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from executing import Training, differences
from test_random_graphs import VARIABLES, drawn, run

import gradtape as gt
from gradtape.plugin import hookimpl
from gradtape.plugins import planned
from gradtape.plugins.planned.tiers import background, measuring, tiered

X = np.linspace(0.5, 1.5, 600, dtype=np.float32).reshape(20, 30)


def program(x: Any) -> Any:
    return gt.sqrt(x * 2.0 + 1.0) / (x + 3.0) - x


def compiled() -> None:
    assert background.BACKGROUND.wait(120)


class ByNumpy(planned.Emitter):
    """Loops that need no compiler: NumPy's steps, which it also notes."""

    patience = 0.0

    def __init__(self) -> None:
        self.groups: list[planned.LoopGroup] = []

    def loop(self, group: planned.LoopGroup) -> Callable[..., Any] | None:
        self.groups.append(group)
        return group.by_numpy


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have loops compiled after the first call."""
    monkeypatch.setattr(tiered, "_CALLS", 1)


@pytest.fixture
def provided() -> Iterator[Callable[[Any], None]]:
    """Return a function that makes a plugin's executor provide loops."""

    def provide(emitter: Any) -> None:
        def executor(graph: Any) -> Any:
            raise AssertionError("nobody selected it")

        executor.emitter = emitter  # type: ignore[attr-defined]

        class Plugin:
            @staticmethod
            @hookimpl
            def gradtape_executors() -> dict[str, Any]:
                return {"acme::loops": executor}

        gt.register_plugin(Plugin(), "loops")

    yield provide
    compiled()
    gt.unregister_plugin("loops")


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return a function that makes all loops faster than NumPy, or the plan without them."""

    def choose(loops: bool) -> None:
        monkeypatch.setattr(measuring.MeasuredLoops, "_measured", lambda self, group: None)
        monkeypatch.setattr(tiered, "_is_faster", lambda mine, other: loops)

    return choose


@pytest.fixture
def llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have loops compiled by LLVM, without delay."""
    pytest.importorskip("llvmlite", reason='pip install "gradtape[fused]"')
    loops = tiered.loops_of_plugins()
    assert isinstance(loops, measuring.LoopSource)
    monkeypatch.setattr(loops, "patience", 0.0)
    monkeypatch.setattr(loops, "reasons", {})


def calls(f: Any, count: int, *given: Any) -> list[Any]:
    """Return the results of calls, with loops compiled after the second one."""
    found = []
    for i in range(count):
        found.append(f(*given))
        if i == 1:
            compiled()
    return found


@pytest.mark.parametrize("choice", [True, False])
def test_training_gives_the_same_bits_before_and_after_the_switch(
    llvm: None, always: Callable[[bool], None], choice: bool
) -> None:
    always(choice)
    mine, other = Training(), Training()
    with gt.executor("planned"):
        wanted = [other.step() for _ in range(50)]
    found = calls(mine.step, 50)
    for step, (ours, right) in enumerate(zip(found, wanted, strict=True)):
        assert not differences(ours, right), f"step {step}"
    assert not differences(mine.state(), other.state())
    told = mine.run.explain(gt.constant(mine.x), gt.constant(mine.labels))
    assert ("one loop" in told) == choice
    assert ("loops: in use" if choice else "loops: not in use") in told


def results(seed: int, executor: str) -> tuple[list[Any], str]:
    """Return what a random graph gives in 18 calls, its variables at the end, and how it ran."""
    draw = random.Random(seed)
    lines = drawn(draw)
    n, dtype = draw.choice((3, 40)), draw.choice(("float32", "float64"))
    kept = sorted(draw.sample(range(1, 1 + VARIABLES + len(lines)), 3))
    numbers = np.random.default_rng(seed)
    x, *first = (numbers.normal(size=(n, n)).astype(dtype) for _ in range(1 + VARIABLES))
    variables = [gt.Variable(start) for start in first]
    f = gt.function(lambda x: run(lines, kept, x, variables), executor=executor)
    with np.errstate(all="ignore"):
        rows = calls(f, 18, gt.constant(x))
    values = [y for row in rows for y in row] + [v.numpy() for v in variables]
    return values, f.explain(gt.constant(x))


@pytest.mark.parametrize("start", range(0, 16, 4))
def test_random_graphs_give_the_same_bits_before_and_after_the_switch(
    llvm: None, always: Callable[[bool], None], start: int
) -> None:
    always(True)
    told = []
    for seed in range(start, start + 4):
        found, how = results(seed, "default")
        assert not differences(found, results(seed, "planned")[0]), seed
        told.append(how)
    assert any("one loop" in text for text in told)


def test_a_plugin_provides_the_loops(
    provided: Callable[[Any], None], always: Callable[[bool], None]
) -> None:
    always(True)
    emitter = ByNumpy()
    provided(lambda: emitter)
    f = gt.function(program)
    found = calls(f, 20, gt.constant(X))
    assert not differences(found, [gt.function(program, executor="planned")(X)] * 20)
    assert emitter.groups
    assert "one loop" in f.explain(X)


def test_a_group_that_numpy_runs_faster_stays_there(provided: Callable[[Any], None]) -> None:
    class Slow(ByNumpy):
        def loop(self, group: planned.LoopGroup) -> Callable[..., Any]:
            def loop(*arrays: Any) -> None:
                for _ in range(20):
                    planned.LoopGroup.by_numpy(group, *arrays)

            return loop

    provided(Slow)
    f = gt.function(program)
    calls(f, 4, gt.constant(X))
    told = f.explain(X)
    assert "loops: no group is faster as a loop" in told
    assert "one loop" not in told


def test_without_a_compiler_nothing_changes(provided: Callable[[Any], None]) -> None:
    def missing() -> Any:
        raise gt.errors.BackendUnavailable("pip install acme-compiler")

    provided(missing)
    f = gt.function(program)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calls(f, 4, gt.constant(X))
    if importlib.util.find_spec("llvmlite") is None:
        assert "pip install" in f.explain(X)


def test_a_broken_compiler_is_named_once(provided: Callable[[Any], None]) -> None:
    class Broken(ByNumpy):
        def loop(self, group: planned.LoopGroup) -> Callable[..., Any]:
            raise OSError("libLLVM.so: cannot open")

    provided(Broken)
    fs = [gt.function(program) for _ in range(3)]
    wanted = gt.function(program, executor="planned")(X)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for f in fs:
            assert not differences(calls(f, 5, gt.constant(X)), [wanted] * 5)
    (message,) = [str(w.message) for w in told]
    assert "cannot open" in message
    assert "GRADTAPE_EXECUTOR=planned" in message
    assert all("cannot open" in f.explain(X) for f in fs)


def test_loops_with_other_bits_are_not_used(provided: Callable[[Any], None]) -> None:
    class Idle(ByNumpy):
        def loop(self, group: planned.LoopGroup) -> Callable[..., Any] | None:
            return lambda *arrays: None  # by far the fastest

    provided(Idle)
    f = gt.function(program)
    for _ in range(40):
        assert np.array_equal(f(X), program(gt.constant(X)))
        compiled()


def test_the_thread_survives_a_compiler_that_ends_it(provided: Callable[[Any], None]) -> None:
    class Ending(ByNumpy):
        def loop(self, group: planned.LoopGroup) -> Callable[..., Any] | None:
            sys.exit(1)

    provided(Ending)
    f = gt.function(program)
    f(X)
    compiled()
    with pytest.warns(RuntimeWarning, match="SystemExit"):
        f(X)
    assert "SystemExit" in f.explain(X)


def test_the_first_calls_do_not_wait(provided: Callable[[Any], None]) -> None:
    go = threading.Event()

    class Waiting(ByNumpy):
        def loop(self, group: planned.LoopGroup) -> Callable[..., Any] | None:
            assert go.wait(60)
            return super().loop(group)

    provided(Waiting)
    f = gt.function(program)
    for _ in range(5):
        f(X)
    assert "loops: being compiled in the background" in f.explain(X)
    go.set()
    compiled()


def test_functions_are_freed_while_they_wait_for_the_compiler(
    provided: Callable[[Any], None],
) -> None:
    go = threading.Event()
    asked: list[int] = []

    class Waiting(ByNumpy):
        def loop(self, group: planned.LoopGroup) -> Callable[..., Any] | None:
            assert go.wait(60)
            asked.append(1)
            return None

    provided(Waiting)
    first, second = gt.function(program), gt.function(lambda x: program(x) + 1.0)
    first(X)
    second(X)
    gone = weakref.ref(second)
    del second
    gc.collect()
    assert gone() is None
    go.set()
    compiled()
    assert len(asked) == 1  # of the first function


def test_threads_call_a_function_while_it_changes(
    llvm: None, always: Callable[[bool], None]
) -> None:
    always(True)
    f = gt.function(program)
    wanted = gt.function(program, executor="planned")(X)
    wrong: list[Any] = []
    done = threading.Event()

    def calling() -> None:
        while not done.is_set():
            wrong.extend(differences([f(X)], [wanted]))

    threads = [threading.Thread(target=calling) for _ in range(4)]
    for thread in threads:
        thread.start()
    while not wrong and "loops: in use" not in f.explain(X):
        done.wait(0.01)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong


# -- processes -------------------------------------------------------------------------------------


SETUP = """
import sys, os
import numpy as np
import gradtape as gt
from gradtape.plugins.planned import combining
from gradtape.plugins.planned.tiers import background, tiered
combining.Emitter.patience, tiered._CALLS = 0.0, 1
x = gt.constant(np.linspace(0.5, 1.5, 600, dtype=np.float32))

@gt.function
def f(x):
    for i in range(40):
        x = gt.sqrt(x * x + i) / (x * x + 3.0) + 0.5
    return x

wanted = f(x).numpy()
"""


def process(code: str) -> str:
    """Run code after the setup in a new process without a cache; return what it prints."""
    settings = {k: x for k, x in os.environ.items() if k != "GRADTAPE_EXECUTOR"}
    done = subprocess.run(
        [sys.executable, "-c", SETUP + code],
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        env={**settings, "GRADTAPE_CACHE_DIR": ""},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.2])
def test_a_process_ends_while_loops_are_compiled(seconds: float) -> None:
    process(f"import time; time.sleep({seconds})")


FORKED = """
import time
time.sleep({seconds})
child = os.fork()
assert background.BACKGROUND._thread is None
found = [f(x).numpy() for _ in range(3)]
assert background.BACKGROUND.wait(60)
found += [f(x).numpy() for _ in range(20)]
same = all(y.tobytes() == wanted.tobytes() for y in found)
assert "being compiled" not in f.explain(x), f.explain(x)
if child == 0:
    os._exit(0 if same else 1)
assert same
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.2])
def test_a_process_forks_while_loops_are_compiled(seconds: float) -> None:
    process(FORKED.format(seconds=seconds))
