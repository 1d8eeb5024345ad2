"""Sources that fill one array anew for each element give what those with new arrays do."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gradtape import layers, training
from gradtape.data import Dataset

COUNT = 7
SHAPE = (3,)


def fill(array: Any, number: int) -> Any:
    array[...] = number
    return array


def twice(array: Any) -> Any:
    return array, array[:1]


class Buffers:
    """Where elements are written: new arrays each time, or always the same ones.

    The same arrays serve all passes and all uses of one place.
    """

    def __init__(self, reused: bool) -> None:
        self.reused, self.held = reused, {}

    def array(self, place: str) -> Any:
        return self.container(place, lambda: np.zeros(SHAPE, "float32"))

    def container(self, place: str, make: Callable[[], Any]) -> Any:
        return self.held.setdefault(place, make()) if self.reused else make()


class Reader:
    def __init__(self, element: Callable[[int], Any]) -> None:
        self.element = element

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, i: int) -> Any:
        return self.element(i)


class Iterable:
    def __init__(self, element: Callable[[int], Any]) -> None:
        self.element = element

    def __iter__(self) -> Iterator[Any]:
        return map(self.element, range(COUNT))


class WithArray:
    """What NumPy converts, such as an image."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array


def held(kind: Any) -> Callable[[Buffers], Callable[[int], Any]]:
    """Return elements in a container that is also the same each time."""

    def make(buffers: Buffers) -> Callable[[int], Any]:
        def element(i: int) -> Any:
            found = buffers.container("held", lambda: kind(np.zeros(SHAPE), np.zeros(SHAPE)))
            for k, array in enumerate(found.values() if isinstance(found, dict) else found):
                fill(array, i + 10 * k)
            return found

        return element

    return make


#: What an element is, given its number.
ELEMENTS: dict[str, Callable[[Buffers], Callable[[int], Any]]] = {
    "array": lambda b: lambda i: fill(b.array("x"), i),
    "view": lambda b: lambda i: fill(b.array("x"), i)[:2],
    "reversed view": lambda b: lambda i: fill(b.array("x"), i)[::-1][1:],
    "pair": lambda b: lambda i: (fill(b.array("x"), i), i),
    "two of one": lambda b: lambda i: twice(fill(b.array("x"), i)),
    "held pair": held(lambda x, y: (x, y)),
    "held dictionary": held(lambda x, y: {"a": x, "b": y}),
    "nested": lambda b: lambda i: {"a": (fill(b.array("x"), i), {"b": fill(b.array("y"), -i)})},
    "object": lambda b: lambda i: WithArray(fill(b.array("x"), i)),
    "memory": lambda b: lambda i: memoryview(fill(b.array("x"), i)),
}
#: How a pipeline reads elements.
DOORS: dict[str, Callable[[Any], Any]] = {
    "from_generator": lambda element: Dataset.from_generator(lambda: map(element, range(COUNT))),
    "items": lambda element: Dataset(Reader(element)),
    "iterable": lambda element: Dataset(Iterable(element)),
    "map": lambda element: Dataset.range(COUNT).map(lambda i: element(int(i))),
    "scan": lambda element: Dataset.range(COUNT).scan(0, lambda s, i: (s, element(int(i)))),
    "flat_map": lambda element: Dataset.range(COUNT).flat_map(
        lambda i: Dataset.from_generator(lambda: iter([element(int(i))]))
    ),
}


def first(*parts: Any) -> Any:
    """Return the first array of an element."""
    found = parts[0]
    while isinstance(found, (tuple, dict)):
        found = found["a"] if isinstance(found, dict) else found[0]
    return found


def lagged(state: Any, element: Any) -> Any:
    return element, element if state is None else state


#: An example of each method that returns a dataset.
STEPS: dict[str, Callable[[Any], Any]] = {
    "apply": lambda d: d.apply(lambda data: data.prefetch(3)),
    "batch": lambda d: d.batch(2),
    "cache": lambda d: d.cache(),
    "concatenate": lambda d: d.concatenate(d),
    "enumerate": lambda d: d.enumerate(),
    "filter": lambda d: d.filter(lambda *parts: first(*parts).flat[0] != 2),
    "flat_map": lambda d: d.flat_map(lambda *parts: Dataset.from_tensors(first(*parts)).repeat(2)),
    "interleave": lambda d: d.interleave(lambda *p: Dataset([first(*p)] * 2), cycle_length=3),
    "map": lambda d: d.map(lambda *parts: parts[0] if len(parts) == 1 else parts),
    "padded_batch": lambda d: d.padded_batch(3),
    "prefetch": lambda d: d.prefetch(2),
    "repeat": lambda d: d.repeat(2),
    "scan": lambda d: d.scan(None, lagged),
    "shard": lambda d: d.shard(2, 1),
    "shuffle": lambda d: d.shuffle(3, seed=1),
    "skip": lambda d: d.skip(1),
    "take": lambda d: d.take(5),
    "take_while": lambda d: d.take_while(lambda *parts: first(*parts).flat[0] != 5),
    "unbatch": lambda d: d.batch(3).unbatch(),
    "window": lambda d: d.window(3, shift=2).flat_map(windowed),
    "with_options": lambda d: d.with_options(None),
    "zip": lambda d: Dataset.zip(d, d.skip(1)),
}
#: More ways to call these methods, in which elements wait elsewhere.
MORE: dict[str, Callable[[Any], Any]] = {
    "map in threads": lambda d: d.map(
        lambda *parts: parts[0] if len(parts) == 1 else parts, num_parallel_calls=3
    ),
    "map to views": lambda d: d.map(lambda *parts: first(*parts)[::-1]),
    "shuffle of all": lambda d: d.shuffle(100, seed=1),
    "interleave of the same": lambda d: Dataset.range(2).interleave(lambda i: d, block_length=2),
    "zip of unbatched": lambda d: Dataset.zip(d.batch(2).unbatch(), d.skip(1)),
}
#: How elements leave a pipeline, for the user to keep.
EXITS: dict[str, Callable[[Any], Any]] = {
    "iter": list,
    "as_numpy_iterator": lambda d: list(d.as_numpy_iterator()),
    "to_list": lambda d: d.to_list(),
    "reduce": lambda d: d.reduce((), lambda state, element: (*state, element)),
}
#: Methods through which elements neither pass nor leave.
OTHERS = {"cardinality", "element_spec", "load_state_dict", "state_dict"}
#: Methods that read arrays as they are, or files.
FROM_ARRAYS = {"from_csv", "from_hdf5", "from_tensor_slices", "from_tensors", "range"}


def windowed(*windows: Any) -> Any:
    found = windows[0]
    while not isinstance(found, Dataset):
        found = first(found)
    return found.batch(2)


def plain(value: Any) -> Any:
    """Return an element in lists, to compare."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return np.asarray(value).tolist()


def outcome(reused: bool, element: str, door: str, steps: list[Any], exit_: str) -> Any:
    try:
        data = DOORS[door](ELEMENTS[element](Buffers(reused)))
        for step in steps:
            data = step(data)
        return plain(EXITS[exit_](data))
    except (ValueError, TypeError) as error:
        return type(error).__name__


def test_each_method_is_among_the_cases() -> None:
    public = {name for name in dir(Dataset) if not name.startswith("_")}
    known = {*STEPS, *EXITS, *OTHERS, *FROM_ARRAYS, *DOORS}
    assert public - known == set(), "a new method: give it an example above"
    static = {name for name in STEPS if not hasattr(Dataset, name)}
    assert not static


@pytest.mark.parametrize("step", [*STEPS, *MORE])
def test_a_reused_buffer_gives_what_new_arrays_do(step: str) -> None:
    steps = [(STEPS | MORE)[step]]
    for element in ELEMENTS:
        for door in DOORS:
            for exit_ in EXITS:
                found = outcome(True, element, door, steps, exit_)
                assert found == outcome(False, element, door, steps, exit_), (element, door, exit_)


@pytest.mark.parametrize("seed", range(6))
def test_random_pipelines_of_reused_buffers(seed: int) -> None:
    generator = random.Random(seed)
    table = STEPS | MORE
    for _ in range(40):
        names = generator.choices(list(table), k=generator.randint(2, 4))
        given = [generator.choice(list(x)) for x in (ELEMENTS, DOORS, EXITS)]
        steps = [table[name] for name in names]
        found = outcome(True, given[0], given[1], steps, given[2])
        assert found == outcome(False, given[0], given[1], steps, given[2]), (given, names)


def test_fit_learns_from_a_reused_buffer_behind_prefetch() -> None:
    def batches() -> Iterator[Any]:
        x, y = np.zeros((8, 1), "float32"), np.zeros((8, 1), "float32")
        generator = np.random.default_rng(0)
        for _ in range(60):
            x[...] = generator.normal(size=x.shape)
            y[...] = 7 * x
            yield x, y

    def weight(data: Any) -> float:
        model = layers.Dense(1)
        training.fit(model, data, optimizer=training.SGD(0.1), loss="mse", verbose=False)
        return float(model(np.ones((1, 1), "float32")).item())

    data = Dataset.from_generator(batches)
    assert abs(weight(data.prefetch(2)) - 7) < 0.1
    assert abs(weight(data.unbatch().batch(8)) - 7) < 0.1


def test_arrays_that_nobody_else_holds_are_not_copied() -> None:
    if not hasattr(sys, "getrefcount"):
        pytest.skip("this Python does not count references")
    made: list[int] = []

    def element(_: Any) -> Any:
        found = np.zeros(SHAPE)
        made.append(found.__array_interface__["data"][0])
        return {"a": (found[::-1][::-1], 1)}

    for data in (
        Dataset.from_generator(lambda: map(element, range(COUNT))),
        Dataset(Reader(element)),
        Dataset.range(COUNT).map(element),
        Dataset.range(COUNT).map(element, num_parallel_calls=2),
        Dataset.range(COUNT).map(element).prefetch(2),
    ):
        made.clear()
        kept = list(data.as_numpy_iterator())
        # two threads begin in any order
        assert {x["a"][0].__array_interface__["data"][0] for x in kept} == {*made}


def test_a_debugger_that_reads_variables_at_import_changes_nothing() -> None:
    program = """
import sys
def trace(frame, event, value):
    if frame.f_code.co_filename.endswith(("arrays.py", "sources.py")):
        frame.f_locals
        return trace
sys.settrace(trace)
from gradtape.data import Dataset
sys.settrace(None)
import numpy as np
def numbers():
    x = np.zeros(1)
    for i in range(3):
        x[0] = i
        yield x
print([x.item() for x in list(Dataset.from_generator(numbers).as_numpy_iterator())])
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "[0.0, 1.0, 2.0]\n", found.stderr


def test_a_part_of_one_element_stays_as_it_is() -> None:
    buffer = np.zeros(2)
    parts = [Dataset.from_tensors(fill(buffer, i)) for i in range(3)]
    assert [part.to_list()[0].tolist() for part in parts] == [[0, 0], [1, 1], [2, 2]]


def test_a_masked_array_keeps_its_mask_or_is_refused() -> None:
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    (found,) = Dataset([masked]).as_numpy_iterator()
    assert found.tolist() == [None, 2]
    assert found is not masked
    for combine in (lambda d: d.batch(1), lambda d: d.prefetch(1).batch(1)):
        with pytest.raises(TypeError, match="a masked array would lose its mask; fill it first"):
            combine(Dataset([masked])).to_list()


def test_a_batch_of_any_size_takes_the_memory_of_its_elements() -> None:
    data = Dataset.from_generator(lambda: (np.full(2**18, i % 256, "uint8") for i in range(600)))
    for size in (10**12, 600, 599):
        batches = list(data.batch(size).as_numpy_iterator())
        assert sum(len(batch) for batch in batches) == 600
        assert all(batch.base is None for batch in batches)
        assert np.concatenate([batch[:, 0] for batch in batches]).tolist() == [
            i % 256 for i in range(600)
        ]
