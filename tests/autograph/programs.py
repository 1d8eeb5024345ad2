# ruff: noqa: SIM108
"""Programs in plain Python, of a vector of three numbers, whose control flow depends on values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import gradtape as gt

W = gt.Variable([0.8, -0.3, 1.1], name="w", dtype="float64")
PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[f.__name__] = f
    return f


# -- if --------------------------------------------------------------------------------------------


@program
def one_of_two(x):
    if x[0] > 0:
        y = x * x
    else:
        y = -x
    return y


@program
def without_else(x):
    y = x
    if gt.sum(x) > 0:
        y = y * gt.sin(x)
    return y


@program
def chain_of_elifs(x):
    if x[0] > 0.4:
        y = x
    elif x[0] > 0:
        y = x**2
    elif x[1] > 0:
        y = x**3
    else:
        y = x**4
    return y


@program
def nested_ifs(x):
    y = x * 1.0
    if x[0] > 0:
        if x[1] > 0:
            y = gt.exp(x)
        else:
            y = gt.cos(x)
            if x[2] > 0.5:
                y = y * y
    return y * x


@program
def several_variables(x):
    a, b = x, 2.0
    if x[0] > 0:
        a, b, c = x * b, 3.0, x[1]
    else:
        c = x[2]
    return a * b + c


@program
def early_return(x):
    if x[0] > 0:
        return x * 2.0
    return x**3


@program
def early_returns(x):
    if x[0] > 0.4:
        return x
    if x[1] > 0:
        return x * x
    if x[2] < 0:
        return gt.sin(x)
    return gt.exp(x)


@program
def return_deep_inside(x):
    if x[0] > 0:
        if x[1] > 0:
            return x
        x = x * 2.0
    return -x * x


@program
def a_condition_that_is_used_again(x):
    positive = x[0] > 0
    y = x
    if positive:
        y = y * 2.0
    y = y + 1.0
    if positive:
        y = y * y
    if not positive:
        y = y * x
    return y


@program
def a_name_assigned_on_one_way(x):
    if x[0] > 0:
        extra = x * 3.0
    y = x * x
    if x[0] > 0:
        y = y + extra
    return y


@program
def the_truth_of_a_number(x):
    if x[0]:
        return x * 2.0
    return x


@program
def an_empty_branch(x):
    y = x * x
    if x[0] > 0:
        pass
    else:
        y = x
    return y


@program
def an_open_size(x):
    if x.shape[0] > 2:
        return x * x
    return x


@program
def python_decides(x):
    for name in ("sin", "cos"):
        if name == "sin":
            x = gt.sin(x)
        else:
            x = x * gt.cos(x)
    return x


@program
def python_values_stay(x):
    if x[0] > 0:
        kind, n = "power", 2
        y = x * 2.0
    else:
        kind, n = "power", 2
        y = x
    assert kind == "power"
    return y[:n] * y[n]


@program
def containers_on_both_ways(x):
    state = {"a": x, "b": (x[0], [1.0])}
    if x[0] > 0:
        state = {"a": x * 2.0, "b": (x[1], [2.0])}
    return state["a"] * state["b"][0] * state["b"][1][0]


# -- expressions -----------------------------------------------------------------------------------


@program
def ternary(x):
    return x * x if x[0] > 0 else gt.sin(x)


@program
def nested_ternaries(x):
    return x if x[0] > 0.4 else x**2 if x[1] > 0 else x**3


@program
def ternary_as_argument(x):
    return gt.exp(x * (2.0 if x[0] > 0 else -1.0))


@program
def and_or_not(x):
    if (x[0] > 0 and x[1] < 0) or not x[2] > 0:
        return x * 3.0
    return x * x


@program
def a_chain_of_comparisons(x):
    return x**2 if -0.5 < x[0] < 0.45 else x**3


@program
def and_with_python(x):
    flag, other = True, False
    if flag and x[0] > 0:
        x = x * 2.0
    if other or x[1] > 0:
        x = x * x
    if other and x[0] > 0:
        x = x + 100.0
    return x


@program
def and_asks_the_second_only_if_needed(x):
    n = gt.sum(gt.cast(x > 0, "int64"))
    if n > 0 and x[n - 1] > 0:
        return x * 2.0
    return x**2


@program
def values_of_and_and_or(x):
    a = x[0] > 0 and x[1] > 0
    b = x[0] > 0 or x[1] > 0
    return x * (2.0 if a else 1.0) + (1.0 if b else 0.0) * x**2


# -- while -----------------------------------------------------------------------------------------


@program
def while_on_a_value(x):
    while gt.sum(x * x) < 50.0:
        x = 1.5 * x + gt.sin(x)
    return x


@program
def while_with_a_count(x):
    n = 0
    while gt.sum(x * x) < 50.0:
        x = 2.0 * x
        n += 1
    return x * n


@program
def while_that_never_runs(x):
    while gt.sum(x) > 1000.0:
        x = x * 0.5
    return x * x


@program
def while_true_with_break(x):
    while True:
        x = x * 1.7
        if gt.sum(x * x) > 20.0:
            break
    return x


@program
def while_with_continue(x):
    i, total = 0.0, x
    while gt.sum(x * x) * i < 6.0:
        i += 1.0
        if gt.sin(i * 7.0) > 0:
            continue
        total = total * 1.2 + x
    return total


@program
def while_with_return(x):
    y = x
    while gt.sum(y * y) < 40.0:
        y = y * 1.6
        if y[0] > 2.0:
            return y * x
    return y


@program
def while_in_while(x):
    outer = x[0] * 0.0
    while outer < 2.0:
        inner = outer
        while inner < 2.5:
            x = gt.tanh(x) + 0.1 * x
            inner += 1.0
        outer += 1.0
    return x


@program
def while_with_if(x):
    i = 0
    while i < gt.sum(gt.cast(x > -2, "int64")):
        if x[i] > 0:
            x = x * 1.1
        else:
            x = x - 0.2 * x[i]
        i += 1
    return x


@program
def fibonacci(x):
    a, b = 0.0, 1.0
    while b < 20.0 + x[0]:
        a, b = b, a + b
    return a * x


@program
def a_growing_tensor(x):
    y = x
    while gt.sum(y) * gt.sum(y) + gt.cast(y.shape[0], "float64") < 8.0:
        y = gt.concatenate([y, x * 0.5])
    return gt.sum(y * y) * x


@program
def newton(x):
    guess = x * x + 1.0
    target = guess + 1.0
    for _ in gt.arange(50):
        step = (guess * guess - target) / (2.0 * guess)
        guess = guess - step
        if gt.max(gt.abs(step)) < 1e-13:
            break
    return guess


# -- for -------------------------------------------------------------------------------------------


@program
def for_over_a_vector(x):
    total = 0.0
    for e in x:
        total = total + e * e
    return total * x


@program
def for_over_rows(x):
    total = x
    for row in gt.outer(x, x):
        total = gt.sin(total) + row
    return total


@program
def for_over_arange(x):
    for i in gt.arange(4):
        x = x * 0.9 + 0.1 * gt.cast(i, "float64")
    return x


@program
def for_over_range_of_a_tensor(x):
    n = gt.sum(gt.cast(x > 0, "int64")) + 1
    y = x
    for i in range(n):
        y = y * x + gt.cast(i, "float64")
    return y


@program
def for_over_the_size(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** (i + 1)
    return total * x


@program
def for_with_enumerate_and_zip(x):
    total = x[0]
    for i, (a, b) in enumerate(zip(x, x[::-1], strict=True)):
        total = total * a + b * gt.cast(i, "float64")
    return total * x


@program
def for_over_reversed(x):
    y = x[0]
    for e in reversed(x):
        y = gt.sin(y) * e + e
    return y * x


@program
def for_with_break(x):
    y = x
    for e in x:
        if e < 0:
            break
        y = y * (e + 1.0)
    return y


@program
def for_with_continue(x):
    y = x
    for e in x:
        if e < 0:
            continue
        y = y * (e + 1.0)
    return y


@program
def for_with_break_and_continue(x):
    y, n = x, 0
    for e in gt.concatenate([x, x * 2.0]):
        if e < -1.0:
            break
        if e > 0.8:
            continue
        n += 1
        y = y + e * y
    return y * n


@program
def for_with_return(x):
    for e in x:
        if e < 0:
            return x * e
        x = x * 1.5
    return x


@program
def for_in_for(x):
    total = x[0] * 0.0
    for a in x:
        for b in x:
            total = total + gt.sin(a * b)
    return total * x


@program
def break_of_the_inner_loop(x):
    total = x[0] * 0.0
    for a in x:
        for b in x:
            if b < a:
                break
            total = total + a * b
        total = total * 1.1
    return total * x


@program
def return_of_the_inner_loop(x):
    for a in x:
        for b in x:
            if a * b < -0.1:
                return x * a * b
    return x


@program
def the_last_item(x):
    for e in x:
        y = e * e
    return y * x + e


@program
def python_range_with_a_break(x):
    for i in range(6):  # noqa: B007
        x = x * 1.4
        if gt.sum(x * x) > 9.0:
            break
    return x * (i + 1)


@program
def python_list_with_a_return(x):
    for scale in [1.0, -2.0, 3.0]:
        if x[0] * scale > 0.3:
            return x * scale
    return x * 10.0


@program
def python_collects_in_a_list(x):
    rows = []
    for scale in (1.0, 2.0):
        rows.append(x * scale if x[0] > 0 else x - scale)  # noqa: PERF401
    return gt.stack(rows)


@program
def a_state_of_a_tuple(x):
    state = (x, gt.cos(x))
    for e in x:
        a, b = state
        state = (a * e + b, a)
    return state[0] * state[1]


@program
def for_else(x):
    for e in x:
        if e < -1.0:
            y = x * e
            break
    else:
        y = x * x
    return y


@program
def while_else(x):
    i = 0
    while i < x.shape[0]:
        if x[i] < 0:
            x = x * x
            break
        i += 1
    else:
        x = x * 3.0
    return x


@program
def a_number_found_in_a_loop(x):
    found = -1
    for i, e in enumerate(x):
        if e < 0 and found < 0:
            found = i
    return x * gt.cast(found, "float64") + x**2


# -- functions -------------------------------------------------------------------------------------


def softened(v):
    if v > 0:
        return v * v
    return -0.1 * v


def collatz(v):
    n = 0
    while v < 3.0:
        v = v * 1.7 if v > 1.0 else v + 0.9
        n += 1
    return v * n


@program
def calls_a_function(x):
    return x * softened(x[0]) + collatz(x[1])


@program
def calls_a_function_inside(x):
    factor = gt.sum(x)

    def scaled(v, by=2.0):
        if v > 0:
            return v * by * factor
        return v / by

    return x * scaled(x[0]) * scaled(x[1], by=3.0)


@program
def calls_a_lambda(x):
    pick = lambda v: v * 2.0 if v > 0 else v**2  # noqa: E731
    return x * pick(x[0]) + pick(x[2])


@program
def calls_a_partial(x):
    def clipped(low, v, high):
        if v < low:
            return low * 1.0
        return v if v < high else high * 1.0

    inside = functools.partial(clipped, -0.5, high=0.6)
    return x * inside(x[0]) * inside(x[2])


@program
def maps_a_function(x):
    return gt.map(softened, x) * x


@program
def recursion_on_a_python_number(x):
    def power(v, n):
        if n == 0:
            return v * 0.0 + 1.0
        return v * power(v, n - 1) if v[0] > 0 else v + power(v, n - 1)

    return power(x, 3)


class Pair(NamedTuple):
    first: Any
    second: Any


@program
def a_named_tuple(x):
    pair = Pair(x, x[0])
    if x[0] > 0:
        pair = Pair(x * 2.0, x[1])
    return pair.first * pair.second


class Counter:
    def __init__(self, value):
        self.value = value
        self.__hidden = 2.0

    def add(self, v):
        return self.__hidden * v if v > 0 else self.__hidden

    def grow(self, v):
        if v > 0:
            self.value = self.value + v

    def __call__(self, v):
        return v * self.value if v > 0 else self.value


@program
def attributes_that_change(x):
    counter = Counter(x[0] * 0.0 + 1.0)
    for e in x:
        counter.value = counter.value + counter.add(e) * e
    counter.grow(x[1])
    if x[0] > 0:
        counter.value = counter.value * x[1]
    return x * counter.value * counter.add(x[0])


@program
def a_callable_object(x):
    return Counter(2.0)(x[0]) * x + Counter(x[1])(x[2])


class Base:
    def scale(self, v):
        return v * 2.0 if v[0] > 0 else v


class Derived(Base):
    def scale(self, v):
        if v[1] > 0:
            return super().scale(v) * v
        return super().scale(v)


@program
def a_method_of_a_base_class(x):
    return Derived().scale(x)


@program
def items_that_change(x):
    table = {"a": x, "b": 1.0}
    if x[0] > 0:
        table["a"] = x * 3.0
    for e in x:
        table["b"] = table["b"] * e
    return table["a"] * table["b"]


@program
def a_variable_from_around(x):
    if x[0] > 0:
        return x * W
    return x * W[0]


@program
def try_and_with(x):
    try:
        with gt.init_scope():
            scale = 2.0
        if x[0] > 0:
            x = x * scale
    finally:
        x = x * 1.0
    return x


@program
def builtins_of_numbers(x):
    big = max(x[0], x[1])
    small = min(x[0], x[1], x[2])
    if any(x > 0.8) or all(x < 0.6):
        return x * big
    return x * small * abs(x[1])


@program
def counts_as_numbers(x):
    n = int(gt.sum(gt.cast(x > 0, "int64")))
    y = x * float(n) if bool(n > 1) else x
    return y**2
