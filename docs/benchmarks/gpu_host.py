"""What a step on a GPU costs the host, measured on a machine without one.

``python docs/benchmarks/gpu_host.py`` runs the steps of ``gpu.py`` on the library that the tests
pretend to be CuPy. It counts what a step asks of CuPy: calls, kernels, products, graphs, and copies
between host and device. And it measures the processor time that gradtape itself takes: each call of
the library is replaced by one that returns at once what it returned in a recorded step. What CuPy,
CUDA and the GPU take comes on top, and only ``gpu.py`` measures it.

It needs a checkout, whose folder ``tests`` has that library, and pytest.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import platform
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import networks
import numpy as np
from gpu import CONTENDERS
from timing import as_markdown

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

import cuda_on_cpu
import cupy_rules
import pretend_gpu

#: How gradtape runs a step, by the contender's name.
WAYS = {name: how for name, (library, how) in CONTENDERS.items() if library == "gradtape"}
#: How many runs there are before a run counts: after some, a step is captured in CUDA graphs.
SETTLING = 6
#: How often it may settle anew, if one run asks for other calls than the next.
ATTEMPTS = 4
#: Examples of a batch, if the processor takes long for a GPU's: the host is asked for the same.
FEWER = {"convolution": 8, "attention": 1}
#: What arrays have that is no call of CuPy: it is known on the host.
PLAIN = "dtype flags itemsize nbytes ndim shape size strides".split()


class Differs(Exception):
    """A step asked for other calls than the one before."""


class Recorder:
    """Records what a library's functions return, and then returns it in their place."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] | None = None
        self.replayed: Iterator[tuple[str, Any]] | None = None
        self._inside = False

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of the library that can be recorded and replaced."""

        def call(*args: Any, **keywords: Any) -> Any:
            if self.replayed is not None:
                wanted, result = next(self.replayed)
                if wanted is not name:
                    raise Differs(f"{name} was called instead of {wanted}")
                return result
            if self._inside or self.calls is None:
                return function(*args, **keywords)
            self._inside = True
            try:
                result = function(*args, **keywords)
            finally:
                self._inside = False
            self.calls.append((name, result))
            return result

        return call

    def record(self, run: Callable[[], Any]) -> list[tuple[str, Any]]:
        """Return the calls of a run with their results, those within calls left out."""
        self.calls = []
        try:
            run()
            return self.calls
        finally:
            self.calls = None

    @contextlib.contextmanager
    def replaying(self, calls: list[tuple[str, Any]]) -> Iterator[None]:
        """Replace the library by what it returned, again and again."""
        self.replayed = itertools.cycle(calls)
        try:
            yield
        finally:
            self.replayed = None


# -- the library -----------------------------------------------------------------------------------


@contextlib.contextmanager
def pretending() -> Iterator[tuple[Recorder, Any]]:
    """Let the pretend library be CuPy; yield its recorder, and itself."""
    from gradtape.plugins.cupy.compiled import products

    with pretend_gpu.as_cupy(devices=1) as library:
        seen = cuda_on_cpu.add_to(library.module)
        recorder = Recorder()
        _wrap_functions(recorder, library.module, "")
        _wrap_functions(recorder, library.special, "special.")
        _wrap_array(recorder, library.ndarray)
        cuda = library.module.cuda
        _wrap_methods(recorder, cuda.Stream, "synchronize begin_capture end_capture")
        _wrap_methods(recorder, library.module.RawKernel, "__call__ compile", "kernel")
        _wrap_methods(recorder, seen.Handle, "bind multiply scratch", "product")
        _wrap_graph(recorder, cuda.Stream)
        kept, products.CublasHandle = products.CublasHandle, seen.Handle
        try:
            yield recorder, library
        finally:
            products.CublasHandle = kept


def _wrap_functions(recorder: Recorder, module: Any, prefix: str) -> None:
    for name, value in list(vars(module).items()):
        if isinstance(value, types.ModuleType) and name in ("linalg", "fft"):
            _wrap_functions(recorder, value, f"{name}.")
        elif isinstance(value, (types.FunctionType, types.MethodType)) and name[0] != "_":
            setattr(module, name, recorder.wrap(prefix + name, value))
    missing = module.__getattr__

    def wrapped(name: str) -> Any:
        found = missing(name)
        if callable(found) and not isinstance(found, type):
            at = getattr(found, "at", None)
            found = recorder.wrap(prefix + name, found)
            if at is not None:
                found.at = recorder.wrap(f"{prefix}{name}.at", at)
            setattr(module, name, found)
        return found

    module.__getattr__ = wrapped


def _wrap_array(recorder: Recorder, kind: type) -> None:
    """Replace the array type's methods, and look up by no name what the host knows."""
    special = "getitem setitem float int complex index bool"
    own = [name for name in vars(kind) if name.startswith("__") and callable(getattr(kind, name))]
    names = dict.fromkeys([*own, *(f"__{name}__" for name in special.split())])
    names = [name for name in names if name not in ("__init__", "__getattr__", "__module__")]
    _wrap_methods(recorder, kind, " ".join([*names, "copy get set"]), "array")
    lookup = kind.__getattr__  # type: ignore[attr-defined]
    for full in cupy_rules.NAMES:
        room, _, name = full.partition(".")
        known = name in (*vars(kind), "data", "device")
        if room != "ndarray" or known or not hasattr(np.ndarray, name):
            continue
        if name in PLAIN:
            setattr(kind, name, property(lambda x, name=name: getattr(x.data, name)))
        elif callable(getattr(np.ndarray, name)):
            call = lambda x, *a, name=name, **k: lookup(x, name)(*a, **k)  # noqa: E731
            setattr(kind, name, recorder.wrap(f"array.{name}", call))
        else:
            look = recorder.wrap(f"array.{name}", lambda x, name=name: lookup(x, name))
            setattr(kind, name, property(look))


def _wrap_methods(recorder: Recorder, kind: type, names: str, title: str = "") -> None:
    for name in names.split():
        full = f"{title or kind.__name__}.{name.strip('_')}"
        setattr(kind, name, recorder.wrap(full, getattr(kind, name)))


def _wrap_graph(recorder: Recorder, stream: Any) -> None:
    """Wrap what a capture returns, whose type has no name."""
    end, done = stream.end_capture, []

    def end_capture(self: Any) -> Any:
        graph = end(self)
        if not done:
            done.append(True)
            _wrap_methods(recorder, type(graph), "launch", "graph")
        return graph

    stream.end_capture = end_capture


# -- the measurement -------------------------------------------------------------------------------


class Cost(NamedTuple):
    """What a run asks of CuPy, by column, and gradtape's own microseconds; None if unknown."""

    asked: Counter[str]
    own: float | None


def cost(recorder: Recorder, library: Any, run: Callable[[], Any], seconds: float) -> Cost:
    """Return what something costs once it has settled.

    Parameters
    ----------
    recorder, library
        From :func:`pretending`.
    run
        What to measure; it asks for the same calls each time.
    seconds
        How long to measure.
    """
    names: list[str] = []
    for _ in range(ATTEMPTS):
        for _ in range(SETTLING):
            run()
        with library.counting() as copies:
            names = [name for name, _ in recorder.record(run)]
        asked = _columns(names, Counter(copies))
        if names == [name for name, _ in recorder.record(run)]:
            break
    # in turns: an array that a step made is not that of the step before
    one, other = recorder.record(run), recorder.record(run)
    try:
        with recorder.replaying([*one, *other]):
            return Cost(asked, _own(run, seconds))
    except Differs:
        return Cost(asked, None)


def _columns(names: list[str], copies: Counter[str]) -> Counter[str]:
    asked: Counter[str] = Counter()
    columns = {"kernel.call": "kernels", "product.multiply": "products", "graph.launch": "graphs"}
    columns["matmul"] = columns["array.matmul"] = "products"
    for name in names:
        asked[columns.get(name, "other calls")] += 1
    to = sum(copies[name] for name in ("array", "set", "index from a list"))
    asked.update({"copies to": to, "copies from": sum(copies.values()) - to})
    return asked


def _own(run: Callable[[], Any], seconds: float, rounds: int = 7) -> float:
    """Return the processor time of a run in microseconds, the best of some rounds."""
    clock = time.process_time
    start = clock()
    run()
    count = max(1, int(seconds / rounds / max(clock() - start, 1e-6)))
    found = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            start = clock()
            for _ in range(count):
                run()
            found.append((clock() - start) / count)
    finally:
        gc.enable()
    return min(found) * 1e6


# -- the tables ------------------------------------------------------------------------------------

COLUMNS = ("kernels", "products", "graphs", "other calls", "copies to", "copies from")


def line(title: str, found: Cost | str) -> list[str]:
    """Return the cells of a table's line."""
    if isinstance(found, str):
        return [title, *["-"] * len(COLUMNS), found]
    own = "calls differ" if found.own is None else f"{found.own:,.1f}"
    if found.own is not None and found.own >= 100:
        own = f"{found.own:,.0f}"
    return [title, *(f"{found.asked[column]:,}" for column in COLUMNS), own]


def task_of(row: str, small: bool) -> networks.Task:
    """Return a row's network, as a GPU is given it or smaller."""
    task, smaller = networks.TASKS[row]
    if small or row not in FEWER:
        return smaller if small else task
    batch = FEWER[row]
    title = task.title.replace(f"batch {task.batch}", f"batch {batch}")
    return task._replace(title=title, shape=(batch, *task.shape[1:]))


def steps(rows: list[str], small: bool, seconds: float) -> Iterator[list[str]]:
    """Give the lines of the table of training steps."""
    import gradtape as gt

    known = ("eager", *gt.registry().executors)
    ways = {name: how for name, how in WAYS.items() if how in known}
    yield ["training step", *COLUMNS, "gradtape's own µs"]
    for row in rows:
        task = task_of(row, small)
        for name, how in ways.items():
            title = f"{task.title}: {name.removeprefix('gradtape ')}"
            with pretending() as (recorder, library):
                try:
                    made = networks.gradtape(task, networks.Numbers(), "gpu", how)
                    found: Cost | str = cost(recorder, library, made.step, seconds)
                except Exception as error:  # which the table tells; others go on
                    found = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            yield line(title, found)


def ops() -> dict[str, Callable[[], Any]]:
    """Return calls of eager ops, by title, on the backend that is selected."""
    import gradtape as gt

    x, b = gt.constant(np.ones((8, 8), np.float32)), gt.constant(np.ones(8, np.float32))
    where = gt.constant(np.array([1, 3]))
    variable = gt.Variable(np.ones((8, 8), np.float32))
    generator = gt.random.Generator(0)  # the one that all share may be on the host

    def gradient() -> Any:
        with gt.GradientTape() as tape:
            y = gt.tanh(variable)
        return tape.gradient(y, variable)

    return {
        "`x + b`": lambda: x + b,
        "`x * 2.0`": lambda: x * 2.0,
        "`gt.tanh(x)`": lambda: gt.tanh(x),
        "`gt.nn.relu(x)`": lambda: gt.nn.relu(x),
        "`gt.nn.softmax(x)`": lambda: gt.nn.softmax(x),
        "`gt.sum(x, axis=0)`": lambda: gt.sum(x, axis=0),
        "`gt.mean(x)`": lambda: gt.mean(x),
        "`x @ x`": lambda: x @ x,
        "`gt.reshape(x, (64,))`": lambda: gt.reshape(x, (64,)),
        "`x[0]`": lambda: x[0],
        "`gt.take(x, indices, axis=0)`": lambda: gt.take(x, where, axis=0),
        "`gt.concat([x, x], axis=0)`": lambda: gt.concat([x, x], axis=0),
        "`gt.where(x > 0, x, b)`": lambda: gt.where(x > 0, x, b),
        "`gt.zeros((8, 8))`": lambda: gt.zeros((8, 8)),
        "`generator.normal((8, 8))`": lambda: generator.normal((8, 8)),
        "`gt.nn.dropout(x, 0.5, generator)`": lambda: gt.nn.dropout(x, 0.5, generator),
        "a gradient of `gt.tanh(x)`, on a tape": gradient,
    }


def eager(seconds: float) -> Iterator[list[str]]:
    """Give the lines of the table of eager ops."""
    import gradtape as gt

    yield ["eager op", *COLUMNS, "gradtape's own µs"]
    with pretending() as (recorder, library), gt.backend("cupy"):
        for title, run in ops().items():
            yield line(title, cost(recorder, library, run, seconds))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--rows", nargs="*", choices=networks.TASKS, default=list(networks.TASKS))
    add("--small", action="store_true", help="the sizes that a processor is given")
    add("--seconds", type=float, default=1.0, help="to measure a line (%(default)s)")
    options = parser.parse_args()
    if cuda_on_cpu.MISSING:
        sys.exit(cuda_on_cpu.MISSING)
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, gradtape "
        f"{version('gradtape')}: what a step costs the host, on a pretend GPU.\n"
    )
    for lines in (steps(options.rows, options.small, options.seconds), eager(options.seconds / 4)):
        print(as_markdown(list(lines)) + "\n", flush=True)


if __name__ == "__main__":
    main()
