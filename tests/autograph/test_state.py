# ruff: noqa: SIM108, B023, E731
"""Python state in traced statements: as Python has it afterwards, or refused by name and line."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers

pytest.importorskip("malt", reason='AutoGraph needs pip install "gradtape[autograph]"')

POINTS = ([0.6, -5.0, 2.0], [-0.7, 0.4, -1.0], [3.0, 1.0, 0.2])
RIGHT: list[Callable[[Any], Any]] = []
REFUSED: list[tuple[Callable[[Any], Any], str]] = []
count = 0


def right(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    RIGHT.append(f)
    return f


def refused(words: str) -> Callable[[Any], Any]:
    def note(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        REFUSED.append((f, words))
        return f

    return note


class Counter:
    n = 0
    total = 0.0

    def add(self, x):
        self.n += 1
        self.total = self.total + x


class Slotted:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v


def count_up():
    global count
    count += 1


def put(d, key, value):
    d[key] = value


# -- as in Python ----------------------------------------------------------------------------------


@right
def items_of_a_loop_that_ends_early(x):
    out = [0.0] * 3
    y = x[0]
    for i, w in enumerate([0.5, 0.25, 0.125]):
        out[i] = w
        y = y - w
        if y < 0:
            break
    return out


@right
def keys_and_attributes_of_a_loop_that_ends_early(x):
    d, box = {"a": 0.0, "b": 0.0}, Counter()
    for key, w in zip(d, x, strict=False):
        d[key] = w
        box.total = w * 2.0
        if w < 0:
            return d["a"], d["b"], box.total
        d[key] = w + 1.0
    return d["a"], d["b"], box.total


@right
def attributes_that_methods_set(x):
    counter = Counter()
    for e in x:
        if e > 0:
            counter.add(e)
    return counter.n, counter.total


@right
def slots_that_functions_set(x):
    box = Slotted(1.0)

    def grow():
        box.v *= 2.0

    if x[0] > 0:
        grow()
    return box.v


@right
def nonlocal_variables_of_callees(x):
    seen = 0

    def see():
        nonlocal seen
        seen += 1

    for e in x:
        if e > 0:
            see()
    while x[0] > seen:
        see()
    return seen


@right
def global_variables_of_callees(x):
    global count
    count = 0
    if x[0] > 0:
        count_up()
        if x[1] > 0:
            count_up()
    return count


@right
def items_that_callees_set(x):
    d, rows = {"a": 0.0}, [[1.0], [2.0]]
    if x[0] > 0:
        put(d, "a", x[0])
        put(rows[1], 0, x[1])
    elif x[1] > 0:
        put(rows[int(len(rows) / 2)], -1, 5.0)
    return d["a"], rows[0][0], rows[1][0]


@right
def expressions_that_change_state(x):
    counter = Counter()

    def positive(e):
        counter.n += 1
        return e > 0

    y = counter.n if positive(x[0]) else 10
    both = positive(x[0]) and positive(x[1]) and positive(x[2])
    one = positive(x[0]) or positive(x[1])
    middle = 0 < x[0] < x[2]
    return y, both, one, middle, counter.n


@right
def lambdas_read_variables_late(x):
    k = x[0]
    scaled = lambda: k * 10.0
    later = (k * e for e in (1.0, 2.0))
    if x[0] > 0:
        k = k + 1.0
    return scaled(), sum(later)


@right
def classes_read_variables_late(x):
    k = x[0]

    class Local:
        def value(self):
            return k * 2.0

    local = Local()
    for e in x:
        k = k + e
    return local.value()


@right
def functions_of_a_loop_read_its_last_value(x):
    found, k = [], 0.0
    for i in range(3):
        found.append(lambda: i * k)
        found.append(lambda i=i: i * k)
        if x[i] > 0:
            k = k + x[i]
    return [f() for f in found]


@right
def partials_keep_values(x):
    k = x[0]
    f = functools.partial(lambda a, b: a * b, k)
    if x[0] > 0:
        k = k + 1.0
    return f(k)


@right
def errors_that_python_knows_are_handled(x):
    y = x[0]
    for i in range(3):
        try:
            if y > 0:
                y = y - 1.0
            y = y + [1.0, 2.0][i]
        except IndexError as error:
            y = y * len(error.args)
            continue
        finally:
            y = y * 2.0
    return y


@right
def errors_of_builtins_and_assertions_are_handled(x):
    y = x[0]
    try:
        y = y + int("none")
    except ValueError:
        y = y * 2.0
    try:
        assert len(x) > 3, "short"
    except AssertionError as error:
        y = y + len(error.args)
    return y


@right
def what_a_block_assigns_before_an_error(x):
    a = x[0]
    with contextlib.suppress(KeyError):
        if a > 0.1:
            a = 0.5
        a = {}["none"]
    return a


@right
def else_of_try(x):
    y = x[0]
    try:
        if y > 0.1:
            y = y * 2.0
    except ValueError:
        y = 100.0
    else:
        if y > 1.0:
            y = -y
    finally:
        y = y + 1.0
    return y


@right
def returns_inside_try_and_with(x):
    try:
        if x[0] > 0:
            return x[0]
    except ValueError:
        pass
    with contextlib.nullcontext() as nothing:
        if x[1] > 0:
            return x[1]
        y = x[2]
    return y * 2.0 if nothing is None else y


@right
def lists_that_a_branch_does_not_touch_stay_themselves(x):
    rows = [x[0], x[1]]
    other = rows
    if x[0] > 0:
        rows = other
    rows[0] = 7.0
    return other


@right
def none_is_none(x):
    y = None
    if x[0] > 0:
        z = 1.0
    else:
        z = 2.0
    return (z if y is None else y), z is not None


@right
def arrays_of_one_name_in_a_loop(x):
    a, view = np.zeros(3), np.ones(3)[:2]
    for e in x:
        a += e
        if e > 0:
            a = a * 2.0
    return gt.sum(a), view[0]


@right
def iterators_made_in_the_block(x):
    y = 0.0
    if x[0] > 0:
        it = iter([1.0, 2.0])
        y = next(it) + next(it)
    rows = [e * 2.0 for e in (1.0, 2.0)]
    return y + sum(rows)


@right
def globals_with_the_name_of_a_local(x):
    global total
    total = 0.0
    grow()
    return (locals_named_total(x), total)


total = 0.0


def grow():
    global total
    total += 1.0


def locals_named_total(x):
    total = 1.0
    if x[0] > 0:
        total = 2.0
        grow()
    return total


@right
def globals_that_a_callee_makes(x):
    globals().pop("made", None)
    make(0.0)
    if x[0] > 0:
        make(1.0)
    return made


def make(value):
    global made
    made = value


class Special:
    """Each operation that Python does for a statement changes a global."""

    def __enter__(self):
        grow()
        return self

    def __exit__(self, *error):
        grow()

    def __iadd__(self, other):
        grow()
        return self

    def __len__(self):
        grow()
        return 1

    def __contains__(self, x):
        grow()
        return True

    def __neg__(self):
        grow()
        return 1.0

    def __iter__(self):
        grow()
        return iter((1.0,))

    @property
    def size(self):
        grow()
        return 1.0

    @functools.cached_property
    def held(self):
        return 4.0


@right
def special_methods_change_state(x):
    global total
    total, special, y = 0.0, Special(), 0.0
    if x[0] > 0:
        with special:
            y = len(special) + special.size
        special += 1
        if 3 in special:
            y = y - (-special)
        for e in special:
            y = y + e
    return y, total


@right
def cached_properties_fill_in_traced_blocks(x):
    special, y = Special(), 0.0
    for e in x:
        if e > 0:
            y = y + special.held
    return y, special.held


@right
def modules_held_in_variables(x):
    import test_state as state

    state.total = 0.0
    if x[0] > 0:
        state.total += 1.0
    return state.total


@right
def loggers_have_caches(x):
    log = logging.getLogger("gradtape.tests.state")
    y = x[0]
    if y > 0:
        log.debug("positive")
        y = y * 2.0
    return y


# -- refused ---------------------------------------------------------------------------------------


@refused("the list 'rows' is changed inside a traced 'if'")
def appends_of_a_loop_that_ends_early(x):
    rows, y = [], x[0]
    for w in (0.5, 0.25):
        if y < 0:
            break
        rows.append(w)
        y = y - w
    return len(rows)


@refused("the list 'put' is changed")
def bound_append(x):
    rows = []
    put = rows.append
    if x[0] > 0:
        put(1.0)
    return len(rows)


@refused("RuntimeError: dictionary changed size during iteration; this is raised while")
def dictionaries_that_grow_while_they_are_read(x):
    d = {"a": 1.0}
    if x[0] > 0:
        for key in d:
            d[key + "b"] = 2.0
    return d["a"]


@refused("the set 'found' is changed")
def sets(x):
    found = set()
    if x[0] > 0:
        found.add(1)
    return len(found)


@refused("the ndarray 'a' is changed")
def arrays_in_place(x):
    a = np.zeros(3)
    if x[0] > 0:
        a[1] = 5.0
    return a


@refused("the ndarray 'a' is changed")
def arrays_that_numpy_writes(x):
    a = np.zeros(3)
    for e in x:
        if e > 0:
            np.copyto(a, 2.0)
    return a


@refused("this would change a NumPy array in place, which a traced statement")
def arrays_with_a_view_in_a_loop(x):
    a = np.zeros(3)
    view = a[:2]
    for e in x:
        a += e
    return view[0]


@refused("this would change a NumPy array in place, which a traced statement")
def arrays_with_two_names_in_a_loop(x):
    a = b = np.zeros(3)
    n = 0
    while n < x[0] + 2.0:
        n += 1
        a *= 2.0
    return b


@refused("this would change a NumPy array in place, which a traced statement")
def arrays_that_a_branch_may_replace(x):
    a = b = np.zeros(3)
    if x[0] > 0:
        a = a * 2.0
    a += 1.0
    return b


@refused("a list_iterator from outside is read")
def next_of_an_iterator(x):
    it = iter([1.0, 2.0])
    y = 0.0
    if x[0] < 0:
        y = next(it)
    return y + next(it)


@refused("a count from outside is read")
def loop_over_an_iterator(x):
    numbers, y = itertools.count(), 0.0
    if x[0] > 0:
        for n in itertools.islice(numbers, 3):
            y = y + n
    return y + next(numbers)


@refused("the Generator 'rng' is changed")
def random_numbers_of_numpy(x):
    rng = np.random.default_rng(0)
    if x[0] < 0:
        return x[0] + rng.normal()
    return rng.normal()


@refused("the state of Python's 'random' is changed")
def random_numbers_of_python(x):
    y = 0.0
    if x[0] < 0:
        y = random.random()
    return y


@refused(r"d\['new'\] is assigned in only one branch")
def new_keys(x):
    d = {}
    if x[0] > 0:
        put(d, "new", 1.0)
    return len(d)


@refused("the test of a traced 'while' changes c.n")
def conditions_that_change_state(x):
    c = Counter()

    def below(limit):
        c.n += 1
        return c.n * 1.0 < limit

    while below(x[0]):
        pass
    return c.n


@refused("'is' compares a tensor with True")
def is_true(x):
    done = False
    if x[0] > 0:
        done = True
    return 1 if done is True else 2


@refused("'is' compares a tensor with False")
def while_is_false(x):
    done, n = False, 0
    while done is False:
        n += 1
        if x[0] < n:
            done = True
    return n


@refused("'is' compares a tensor with False")
def while_is_false_in_try(x):
    done, n = False, 0
    try:
        while done is False:
            n += 1
            if x[0] < n:
                done = True
    except ValueError:
        n = -1
    return n


@refused("'is' compares tensors of which one is the result of a traced statement")
def is_another_tensor(x):
    first = x[0]
    y = first
    if x[1] > 0:
        y = x[1]
    return 1.0 if y is not first else 2.0


@refused("a run decides which list 'rows' is, and one of them is changed afterwards")
def lists_with_two_names(x):
    rows, other = [x[0]], [x[1]]
    if x[0] > 0:
        rows = other
    rows[0] = x[2]
    return other[0]


@refused("cannot be a key of a dict or an element of a set")
def sets_of_chosen_numbers(x):
    return len({1.0 if e > 0.1 else 2.0 for e in (x[0], x[1])})


@refused("ValueError: negative; this is raised while both branches of the 'if' are traced")
def an_error_that_its_function_handles(x):
    try:
        if x[0] < 0:
            raise ValueError("negative")
        return x[0]
    except ValueError:
        return -1.0


@refused("KeyError: 'none'; this is raised while both branches")
def an_error_that_is_suppressed(x):
    y = 1.0
    with contextlib.suppress(KeyError):
        if x[0] < 0:
            y = {}["none"]
    return y


@refused("'half' is float16 if the condition holds, and float32 otherwise")
def numbers_that_leave_a_dtype(x):
    half = x[0].astype("float16")
    if x[1] < 0:
        half = half * 2.0
    else:
        half = 1e6
    return half.astype("float64")


@refused("KeyError: 'none'; this is raised while both branches")
def an_error_that_another_replaces(x):
    try:
        try:
            if x[0] < 0:
                return {}["none"]
        except KeyError:
            raise ValueError from None
    except ValueError:
        return -1.0
    return x[0]


@refused("a tensor's value is not known")
def an_error_that_an_unconverted_function_drops(x):
    match len(x):
        case 3:
            try:
                return 1.0 if x[0] > 0 else 2.0
            finally:
                return 200.0  # noqa: B012, SIM107


def rooted(e):
    if e < 0:
        raise ValueError
    return gt.sqrt(e)


@refused("ValueError; this is raised while both branches")
def an_error_that_the_caller_handles(x):
    try:
        return rooted(x[0])
    except Exception as error:
        return -1.0 * len(error.args)


@refused("in a trace, only tensors and numbers can depend on a condition")
def a_refusal_that_is_suppressed(x):
    word = "a"
    with contextlib.suppress(Exception):
        if x[0] > 0:
            word = "b"
    return float(len(word))


@refused("a tensor's value is not known")
def errors_of_unconverted_functions(x):
    with contextlib.suppress(TypeError):
        match len(x):
            case 3:
                return 1.0 if x[0] > 0 else 2.0
    return 3.0


def positive_parts(x):
    for e in x:
        try:
            yield e if e > 0 else 0.0
        except Exception:
            yield 5.0


@refused("a tensor's value is not known")
def errors_of_generators(x):
    return sum(positive_parts([x[0], x[1]]))


@refused("a tensor's value is not known")
def numpy_arrays_take_no_traced_values(x):
    a = np.zeros(2)
    a[0] = x[0]
    return a


@refused("a tensor's value is not known")
def errors_that_numpy_makes_of_others(x):
    a = np.zeros(2)
    with contextlib.suppress(TypeError, ValueError):
        a[0] = x[0]
    return a


@refused("a run would raise the error of this 'assert', and the 'try' around it")
def an_assertion_that_is_handled(x):
    try:
        assert x[0] > 0
    except AssertionError:
        return 1.0
    return 2.0


def outcome(value: Any) -> list[Any]:
    return [np.asarray(v) for v in (value if isinstance(value, (list, tuple)) else [value])]


@pytest.mark.filterwarnings("ignore:autograph. a traced statement changes")
@pytest.mark.parametrize("f", RIGHT, ids=lambda f: f.__name__)
def test_state_is_what_python_has(f: Callable[[Any], Any]) -> None:
    traced = gt.function(f, autograph=True)
    for point in POINTS:
        x = gt.constant(point, dtype="float64")
        found = outcome(traced(x))
        np.testing.assert_allclose(np.stack(found), np.stack(outcome(f(x))), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:autograph. .* runs unconverted")
@pytest.mark.parametrize(("f", "words"), REFUSED, ids=lambda v: getattr(v, "__name__", ""))
def test_what_a_run_cannot_change_is_refused(f: Callable[[Any], Any], words: str) -> None:
    for point in POINTS:
        with pytest.raises((ValueError, TypeError), match=words) as raised:
            gt.function(f, autograph=True)(gt.constant(point, dtype="float64"))
        assert "test_state.py:" in str(raised.value)


def test_gradients_pass_through_changed_state() -> None:
    def f(x: Any) -> Any:
        counter = Counter()
        for e in x:
            if e > 0:
                counter.add(e * e)
        return counter.total * counter.n

    x = gt.constant([0.5, -1.0, 2.0], dtype="float64")
    traced = gt.function(f, autograph=True)
    np.testing.assert_allclose(gt.grad(traced)(x), gt.grad(f)(x))
    np.testing.assert_allclose(gt.hessian(traced)(x), gt.hessian(f)(x))


def test_a_refusal_leaves_objects_as_they_were() -> None:
    rows, d, a = [1.0], {"a": 1.0}, np.zeros(2)

    def f(x: Any) -> Any:
        if x > 0:
            d["a"] = x
            a[:] = 3.0
            rows.append(x)
        return x

    with pytest.raises(ValueError, match=r"the (list 'rows'|ndarray 'a') is changed"):
        gt.function(f, autograph=True)(gt.constant(1.0))
    assert (rows, d, a.tolist()) == ([1.0], {"a": 1.0}, [0.0, 0.0])


class Lazy(layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.width: int | None = None
        self.inner: list[Any] = []

    def build(self, shape: Any) -> None:
        self.width = shape[-1]
        self.inner.append(layers.Dense(3, kernel_initializer="ones"))
        self.scale = self.add_weight(shape=(3,), initializer="ones", name="scale")

    def call(self, x: Any) -> Any:
        return self.inner[0](x) * self.scale


def test_layers_are_built_in_traced_branches() -> None:
    layer = Lazy()

    @gt.function(autograph=True)
    def f(x: Any) -> Any:
        if gt.sum(x) > 0:
            x = layer(x)
        return x

    np.testing.assert_array_equal(f(gt.ones((2, 3))), np.full((2, 3), 3.0))
    assert (layer.width, len(layer.inner)) == (3, 1)


def test_caches_may_fill_where_nothing_is_converted() -> None:
    tables: dict[int, Any] = {}

    @gt.autograph.do_not_convert
    def table(n: int) -> Any:
        return tables.setdefault(n, np.ones(n, "float32"))

    @gt.function(autograph=True)
    def f(x: Any) -> Any:
        if x[0] > 0:
            x = x + table(3)
        return x

    np.testing.assert_array_equal(f(gt.constant([1.0, 2.0, 3.0])), [2.0, 3.0, 4.0])
    assert list(tables) == [3]


def fibonacci(n: Any) -> Any:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def factorial(n: Any) -> Any:
    result, i = 1, 1
    while i <= n:
        result *= i
        i += 1
    return result


@pytest.mark.parametrize(("f", "most"), [(fibonacci, 91), (factorial, 20)])
def test_integers_of_a_loop_do_not_wrap(f: Callable[[Any], Any], most: int) -> None:
    traced = gt.function(f, autograph=True)
    for n in (0, 1, 10, most):
        assert traced(gt.constant(n)).item() == f(n)
    with pytest.raises(OverflowError, match=r"test_state.py:\d+: an integer that the 'for|while'"):
        traced(gt.constant(most + 9))
