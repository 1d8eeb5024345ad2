"""``Traces``: the traces that a function keeps, and what goes wrong with them.

A function warns if it has many traces, and if one drew random numbers that later calls repeat.
Calls without an end are an error. A function that names its executor is traced for all examples
of ``vmap`` together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_char
from threading import RLock
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.array_types import TensorSpec
from ..base.context import (
    active_batches,
    active_graph,
    active_tapes,
    reducing,
    tracing_into,
    training_mode,
)
from ..base.sizes import has_unknown_sizes
from ..base.tree import flatten, map_structure, pack_like, paths, sorted_keys
from ..base.user_code import raise_hidden, warn_user
from ..batches.batched import HIDE, UNHIDE, has_level, levels_of
from ..errors import TraceError
from ..tensors.tensor import Tensor
from ..transforms.vmap import vmap
from .concrete import ConcreteFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .function import Function

#: How many traces a function keeps by default.
MAX_TRACES = 128
# With this many traces, a warning names the argument that causes them.
_MANY = 32
# How many shapes of arguments are remembered; a trace may serve any number of them.
_MOST_SHAPES = 1024
# Held while traces are added or dropped; shared by all functions, so that these can be copied.
_LOCK = RLock()


class Open(NamedTuple):
    """Arguments with unknown sizes, for which a function has a trace or should have one."""

    key: Any
    #: ``(args, kwargs)`` with a spec for each tensor.
    call: Any


class Traces:
    """The traces of one function: up to ``limit`` from calls, and all requested ones.

    Parameters
    ----------
    name
        The function's name, for the warning.
    limit
        How many of the traces that calls make are kept; ``None`` for all. The oldest one that was
        not called again since the last check is dropped first.
    reduce
        Whether a call that differs from earlier ones only in sizes is traced with these sizes
        unknown.
    """

    def __init__(self, name: str, limit: int | None, reduce: bool) -> None:
        self.name, self.limit, self.reduce = name, limit, reduce
        self.by_key: dict[Any, ConcreteFunction] = {}
        #: By the shapes and dtypes of calls with only tensors, which are the most frequent.
        self.quick: dict[Any, ConcreteFunction] = {}
        #: Traces with unknown sizes, by the rest of the key; the most specific first.
        self.open: dict[Any, list[tuple[Any, ConcreteFunction]]] = {}
        self._asked_for: set[Any] = set()
        self._seen: list[Any] | None = []  # the keys so far, until the warning
        self._warned = False

    def known(self, key: Any) -> ConcreteFunction | None:
        """Return the trace of a key that fits the modules' training and frozen states; or None."""
        found = self.by_key.get(key)
        if (found is None or found.asks_mode) and sets_training():
            found = self.by_key.get(_mode_key(key))
        return None if found is None or found.outdated else found

    def ask_for(self, key: Any, concrete: ConcreteFunction) -> None:
        """Keep a trace for good."""
        with _LOCK:
            kept = self._keep(key, concrete)
            if kept not in self._asked_for:
                self._asked_for.add(kept)
                self.quick = {}  # it may fit better than what was found so far

    def add(self, key: Any, concrete: ConcreteFunction, call: Any, names: Sequence[str]) -> None:
        """Keep a trace made by ``call = (args, kwargs)``; ``names`` are those of ``args``."""
        with _LOCK:
            key = self._keep(key, concrete)
            if self.limit is not None and len(self.by_key) - len(self._asked_for) > self.limit:
                self._drop(key)
            if self._seen is None:
                return
            self._seen.append(key)
            if len(self._seen) < _MANY:
                return
            seen, self._seen = self._seen, None
        warn_user(_many(self.name, seen, list(_labels(call, names)), self.reduce), UserWarning)

    def remember(self, shapes: Any, concrete: ConcreteFunction) -> None:
        """Remember a trace by the shapes and dtypes of its arguments."""
        if len(self.quick) >= _MOST_SHAPES:
            self.quick = {}
        self.quick[shapes] = concrete

    def fitting(self, key: Any, tensors: Sequence[Tensor]) -> Open | None:
        """Return the most specific arguments with unknown sizes that admit those of a call."""
        for known, concrete in self.open.get(_kind(key), ()):
            if concrete.takes(tensors):
                return Open(known, concrete.arguments)
        return None

    def opened(self, key: Any, call: Any) -> Open | None:
        """Return a call whose sizes are unknown where they differ from earlier calls.

        None if no earlier call differed only in sizes, or if these could not be traced as unknown.
        """
        kinds, shapes = {_kind(key)}, _shapes(key)  # a set compares hashes before values
        common = shapes
        for known, concrete in list(self.by_key.items()):
            others = _shapes(known)
            if _kind(known) in kinds and all(map(_same_rank, shapes, others)):
                if concrete.closed:
                    return None
                common = list(map(_in_common, common, others))
        if common == shapes:
            return None
        leaves, specs = list(key[1]), flatten(call)
        for i, shape in enumerate(common):
            if shape != shapes[i]:
                dtype = leaves[i][1]
                leaves[i], specs[i] = (shape, dtype), TensorSpec(shape, dtype)
        return Open((key[0], tuple(leaves)), pack_like(call, specs))

    def refused(self, wide: Open, call: Any, reason: Exception, names: Sequence[str]) -> None:
        """Warn, once, why a call was not traced with unknown sizes."""
        if self._warned or not self.reduce:
            return
        self._warned = True
        columns = zip(_labels(call, names), flatten(call), flatten(wide.call), strict=True)
        what = [
            f"{label} as {b!r}" for label, a, b in columns if isinstance(b, TensorSpec) and a != b
        ]
        warn_user(
            f"function {self.name!r}: reduce_retracing has no effect, and each size makes a trace: "
            f"tracing {' and '.join(what)} failed with {type(reason).__name__}: {reason}",
            UserWarning,
        )

    def _keep(self, key: Any, concrete: ConcreteFunction) -> Any:
        """Keep a trace, and return its key, which includes the mode."""
        kept = _mode_key(key) if concrete.while_training else key
        self.by_key[kept] = concrete
        _file(self.open, key, concrete)
        return kept

    def _drop(self, newest: Any) -> None:
        old = [key for key in self.by_key if key not in self._asked_for and key != newest]
        for key in old:
            concrete = self.by_key[key]
            if not concrete.called_again:
                break
            concrete.called_again = False
            self.by_key[key] = self.by_key.pop(key)  # now after the newest
        else:
            key = old[0] if old else newest
        dropped = self.by_key.pop(key)
        self.quick = {shapes: c for shapes, c in self.quick.items() if c is not dropped}
        if self.open:
            opened: dict[Any, list[tuple[Any, ConcreteFunction]]] = {}
            for key, concrete in self.by_key.items():
                _file(opened, key[:2], concrete)
            self.open = opened


def sets_training() -> bool:
    """Return whether the enclosing call sets modules to training."""
    mode = training_mode.get()
    return mode is not None and bool(mode.training)


def _mode_key(key: Any) -> Any:
    """Return the key of a trace whose modules were set to training by an enclosing call."""
    return (*key, "training")


def _is_tensor(leaf: Any) -> bool:
    """Return whether a part of a key is a tensor's: shape, dtype, and names if it has any."""
    return type(leaf) is tuple and not isinstance(leaf[0], type)


def _kind(key: Any) -> Any:
    """Return a key without its shapes and mode."""
    return key[0], tuple([leaf[1] if _is_tensor(leaf) else leaf for leaf in key[1]])


def _shapes(key: Any) -> list[Any]:
    return [leaf[0] if _is_tensor(leaf) else None for leaf in key[1]]


def _same_rank(a: Any, b: Any) -> bool:
    return a is b is None or (a is not None and b is not None and len(a) == len(b))


def _in_common(a: Any, b: Any) -> Any:
    return a and tuple([n if n == m else None for n, m in zip(a, b, strict=True)])


def _file(opened: dict[Any, Any], key: Any, concrete: ConcreteFunction) -> None:
    """Add a trace to those with unknown sizes, if it has any; replace one with the same key."""
    if any(_is_tensor(leaf) and has_unknown_sizes(leaf[0]) for leaf in key[1]):
        others = [pair for pair in opened.get(_kind(key), ()) if pair[0] != key]
        by_openness = sorted([*others, (key, concrete)], key=lambda pair: _openness(pair[1]))
        opened[_kind(key)] = by_openness


def _openness(concrete: ConcreteFunction) -> tuple[int, int, int]:
    """Return the numbers of unknown ranks, of distinct unknown sizes, and of all unknown sizes."""
    shapes = [spec.dims for spec in concrete.specs]
    sizes = [n for shape in shapes if shape is not None for n in shape if type(n) is not int]
    unnamed = sizes.count(None)
    return shapes.count(None), unnamed + len({*sizes} - {None}), len(sizes)


def leaf_names(call: Any, names: Sequence[str]) -> list[str | None]:
    """Return an expression for each leaf of a call's arguments (``x['a']``), or None."""
    found: list[str | None] = []
    for name, x in _arguments(call, names):
        found += [None] * len(flatten(x)) if name is None else paths(x, name)
    return found


def _labels(call: Any, names: Sequence[str]) -> Iterator[str]:
    """Yield a label for each leaf of a call's arguments."""
    for i, (name, x) in enumerate(_arguments(call, names)):
        yield from [f"argument {i}" if name is None else f"argument {name!r}"] * len(flatten(x))


def _arguments(call: Any, names: Sequence[str]) -> list[tuple[str | None, Any]]:
    """Return the arguments of a call with their names."""
    args, kwargs = call
    named = [(names[i] if i < len(names) else None, x) for i, x in enumerate(args)]
    return [*named, *((key, kwargs[key]) for key in sorted_keys(kwargs))]


def _many(name: str, keys: list[Any], labels: list[str], reduces: bool) -> str:
    """Return the warning that says what causes many traces, and what to write instead."""
    begin = f"function {name!r} was traced {len(keys)} times: "
    structures: dict[Any, list[Any]] = {}
    for tree, leaves, *_ in keys:
        structures.setdefault(tree, []).append(leaves)
    alike = structures[keys[-1][0]]  # the calls that the labels describe
    columns = [list(dict.fromkeys(column)) for column in zip(*alike, strict=True)]
    place = max(range(len(columns)), key=lambda i: len(columns[i]), default=None)
    if place is None or len(columns[place]) < len(structures):
        return (
            f"{begin}its arguments came in {len(structures)} structures (containers of different "
            "lengths, keys or types), and each makes a trace; stack lists of tensors into one "
            "tensor (gradtape.stack)"
        )
    label, values = labels[place], columns[place]
    if len(values) == 1:
        return (
            f"{begin}for the same arguments each time, because variables that it uses were frozen "
            "or thawed in between; make a separate function for each of these states"
        )
    begin += f"{label} came "
    last = values[-1]
    if isinstance(last, str) or last[0] in (int, complex):
        shown = last if isinstance(last, str) else repr(last[1])
        return (
            f"{begin}as {len(values)} Python numbers (last {shown}), and each makes a trace; pass "
            f"a tensor, gradtape.constant({shown}), so that one trace serves all"
        )
    if isinstance(last[0], type):
        return (
            f"{begin}as {len(values)} Python values (last one of type {last[0].__name__}), and "
            "each makes a trace; pass the same object each time, pass numbers as a tensor, or make "
            "a separate function for each value"
        )
    shapes, dtypes = [value[0] for value in values], {value[1] for value in values}
    common = shapes[0]
    for shape in shapes:
        common = _in_common(common, shape) if _same_rank(common, shape) else None
    also = ""
    if common is not None and len(dtypes) == 1 and not reduces:
        also = "; or use reduce_retracing=True, so that one trace serves all sizes"
    return (
        f"{begin}in {len(values)} shapes or dtypes (last {last[0]} {last[1]}), and each makes a "
        f"trace; make one for all with input_signature=[...] and "
        f"{TensorSpec(common, last[1])!r} for {label}{also}"
    )


# -- what a trace cannot repeat --------------------------------------------------------------------


#: The memory of the state of NumPy's default generator: 624 words and a position.
_MT19937 = c_char * (625 * 4)


def numpy_random_state() -> Any:
    """Return the state of NumPy's global generator.

    NumPy's own function builds an array of it, which takes as long as a small trace. What this one
    leaves out is the second of a pair of normal numbers, which NumPy keeps for the next draw.
    """
    generator: Any = vars(np.random)["get_bit_generator"]()  # unknown to NumPy's stubs
    if type(generator) is np.random.MT19937:
        return _MT19937.from_address(generator.ctypes.state_address).raw
    return generator.state


def _python_random_state() -> Any:
    import random  # for traces only

    return random.getstate()


#: Sources of random numbers that a trace takes as constants, and functions that return their state.
_SOURCES: dict[str, Callable[[], Any]] = {
    "np.random": numpy_random_state,
    "random": _python_random_state,
}


@contextmanager
def checked_trace(name: str, first: bool) -> Iterator[None]:
    """Raise an error that names the functions, if a trace of them calls them without an end.

    Warn if the function draws random numbers that later calls repeat, in its ``first`` trace.
    """
    before = {source: state() for source, state in _SOURCES.items() if first}
    try:
        yield
    except RecursionError as error:
        names = _calls(error.__traceback__)
        if not names:  # Python's own functions, whatever is traced
            raise
        raise TraceError(
            f"function {name!r}: the trace does not end: "
            f"{_recursion_text(names)}, deeper than Python allows. If "
            "the value of a tensor decides (cond, or if with autograph), both branches are traced, "
            "and so is the next call. Let a Python value end the recursion, such as an integer "
            "argument, or write a loop: gradtape.while_loop"
        ) from None
    except ValueError as error:
        raise_hidden(error)
        raise
    for source, state in before.items():
        if _SOURCES[source]() != state:
            # all threads share the state
            others = " (or another thread did)" if threading.active_count() > 1 else ""
            warn_user(
                f"function {name!r}: it drew numbers from {source} while it was traced{others}; "
                "they are constants of the trace, and every later call repeats them. Draw with "
                "gradtape.random, or draw outside and pass the numbers as an argument",
                UserWarning,
            )


def _recursion_text(names: list[str]) -> str:
    if len(names) > 1:
        return f"{' and '.join(names)} call each other"
    return f"{''.join(names) or 'a function'} calls itself"


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _calls(traceback: TracebackType | None) -> list[str]:
    """Return the names of the functions that call each other, in order."""
    owners: list[Any] = [
        frame.f_locals.get("self")
        for frame in _frames(traceback)
        if frame.f_code.co_name == "__call__"
    ]
    traced = [x for x in owners if hasattr(x, "python_function")]
    again = [x for i, x in enumerate(traced) if any(x is y for y in traced[:i])]
    return list(dict.fromkeys(str(x.name) for x in again))


class Unbatched(Exception):
    """The function has to run op by op, as functions without an executor do in batches."""


def on_batches(function: Function[..., Any], call: Any, key: Any, tensors: Sequence[Tensor]) -> Any:
    """Run a function on batches by its executor.

    Parameters
    ----------
    function
        The function.
    call
        ``(args, kwargs)`` with a spec for each tensor.
    key
        What distinguishes such calls.
    tensors
        The tensors.

    Raises
    ------
    Unbatched
        If no tensor is a batch, if a recorder or an outer trace has to see each op, or if the
        function captures a batch.
    """
    arrays = [x.array for x in tensors]
    met = frozenset().union(*map(levels_of, arrays))
    running = [batch for batch in active_batches.get() if batch.level in met]
    batches = sorted(running, key=lambda batch: batch.level)
    if not met or active_graph.get() or active_tapes.get() or reducing.get():
        raise Unbatched
    axes = []  # from the innermost vmap
    for batch in batches:
        batched = [has_level(x, batch.level) for x in arrays]
        pairs = zip(arrays, batched, strict=True)
        arrays = [UNHIDE.raw(x, x, level=batch.level) if b else x for x, b in pairs]
        axes.append((tuple([0 if b else None for b in batched]), batch.randomness))
    place = key, tuple(axes)
    if len(function.batched) > MAX_TRACES:
        function.batched = {}
    if place not in function.batched:
        function.batched[place] = _for_all(function, call, axes)
    whole = function.batched[place]
    if whole is None:
        raise Unbatched
    try:
        with tracing_into(None):  # outside the batches
            found = whole(*map(Tensor, arrays))
    except TraceError as error:
        function.batched[place] = None
        warn_user(
            f"function {function.name!r}: executor={function.executor!r} has no effect in this "
            f"vmap, which runs the function op by op, because: {error}",
            UserWarning,
        )
        raise Unbatched from None

    def hidden(y: Any) -> Any:
        for batch in reversed(batches):
            y = None if y is None else HIDE(y, level=batch.level)
        return y

    return map_structure(hidden, found)


def _for_all(
    function: Function[..., Any], call: Any, axes: Sequence[tuple[tuple[int | None, ...], str]]
) -> Any:
    """Return the function of all examples, with an argument for each tensor."""

    def whole(*tensors: Any) -> Any:
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, TensorSpec) else leaf for leaf in flatten(call)]
        args, kwargs = pack_like(call, leaves)
        return function.run(*args, **kwargs)

    whole.__name__ = function.name
    for in_axes, randomness in axes:
        whole = vmap(whole, in_axes=in_axes, randomness=randomness)
    return type(function)(whole, executor=function.executor, autograph=False)
