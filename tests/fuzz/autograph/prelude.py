"""What programs call: a text, because AutoGraph does not convert gradtape's own functions."""

from __future__ import annotations

__all__ = ["PRELUDE"]

PRELUDE = """
import collections
import contextlib
import dataclasses
import functools
import io
import itertools
import operator
import random
from contextlib import suppress

import numpy as np

import gradtape as gt

seen = []
table = {}
count = 0.0
array = np.zeros(2)
V = gt.Variable(0.5, dtype="float64")
VV = gt.Variable([0.5, -0.25], dtype="float64")


Pair = collections.namedtuple("Pair", "v w")


@dataclasses.dataclass
class Point:
    v: object
    w: object


class Slots:
    __slots__ = ("v", "w")


class Box:
    made = 0.0

    def __init__(self, v):
        self.v = v
        self.w = 0.5
        self.items = [v]
        self.d = {"k": v}
        self.sub = None

    def bump(self, x):
        self.v = self.v + x
        return self.v

    def bump_if(self, x):
        if x > 0.2:
            self.v = self.v + x
        return self.v

    def twice_bumped(self, x):
        self.bump(x)
        return self.bump(x) * 0.5

    def keep(self, x):
        self.items.append(x)
        return x

    def tell(self):
        return self.v * 2.0

    def count(self):
        Box.made = Box.made + 1.0
        return Box.made

    @property
    def twice(self):
        return self.v * 2.0

    @twice.setter
    def twice(self, x):
        self.v = x * 0.5

    @property
    def touched(self):
        self.w = self.w + 1.0
        return self.w

    def __call__(self, x):
        self.w = x
        return x * 2.0

    def __setitem__(self, i, x):
        self.items[i] = x

    def __getitem__(self, i):
        return self.items[i]

    def __iadd__(self, x):
        self.v = self.v + x
        return self

    def __add__(self, x):
        self.w = self.w + 1.0
        return self.v + x

    def __lt__(self, x):
        self.w = self.w + 1.0
        return self.v < x

    def __contains__(self, x):
        self.w = self.w + 1.0
        return True

    def __len__(self):
        self.w = self.w + 1.0
        return 2

    def __iter__(self):
        self.w = self.w + 1.0
        return iter(self.items)

    def __enter__(self):
        self.w = self.w + 1.0
        return self

    def __exit__(self, *error):
        self.v = self.v * 0.5
        return False

    @classmethod
    def counted(cls):
        cls.made = cls.made + 1.0
        return cls.made

    @staticmethod
    def noted(x):
        seen.append(x)
        return x


class Swallow:
    def __init__(self, box):
        self.box = box

    def __enter__(self):
        return self.box

    def __exit__(self, kind, error, trace):
        self.box.w = self.box.w + 1.0
        return kind is ValueError


def reset():
    global count
    seen.clear()
    table.clear()
    table["k"] = 0.25
    count = 0.0
    array[:] = 0.0
    Box.made = 0.0
    V.assign(0.5)
    VV.assign([0.5, -0.25])


def helper(v, w):
    if v > w:
        return v * 0.5
    return gt.sin(w) + v


def put(l, v):
    l.append(v)
    return v


def put_if(l, v):
    if v > 0.2:
        l.append(v)
    return v


def put_deep(l, v):
    return put(l, v * 0.5) + put(l, v)


def put_first(l, v):
    l[0] = v
    return v


def keep(d, k, v):
    d[k] = v
    return v


def count_up():
    global count
    count = count + 1.0
    return count


def note(v):
    seen.append(v)
    return v


def mark(k, v):
    table[k] = v
    return v


def stamp(w, i):
    w[i] = w[i] + 4.0
    return 1.0


def stamp_all(w):
    w += 1.0
    return 0.5


def stamp_global():
    array[0] += 1.0
    return array[0]


def set_v(p, v):
    p.v = v
    return v


def set_named(p, name, v):
    setattr(p, name, v)
    return v


def add_to_v(v):
    V.assign_add(v)
    return V * 1.0


def fail(v):
    raise ValueError("no")


def check(v):
    if v > 0.3:
        raise ValueError("too large")
    return v


def checked(v):
    try:
        return check(v)
    except ValueError:
        return v * 0.5


def put_and_fail(l, v):
    l.append(v)
    raise ValueError("no")


def recur(n, l, v):
    if n == 0:
        return v
    l.append(v)
    return recur(n - 1, l, v * 0.5)


def recur_if(n, l, v):
    if n == 0:
        return v
    if v > 0.1:
        l.append(v)
        return recur_if(n - 1, l, v * 0.5)
    return v + 1.0


def taken(it):
    return next(it, 0.0)


def steps(n):
    for i in range(n):
        yield i * 0.5


def of(l):
    for v in l:
        yield v * 2.0


def apply(g, *args):
    return g(*args)


def made_adder(n):
    total = 0.0

    def add(v):
        nonlocal total
        total = total + v * n
        return total

    return add


def matched(k, l, v):
    match k:
        case 0:
            l.append(v)
        case _:
            l[0] = v
    return v


def walrus(l, v):
    l.append(c := v * 0.5)
    return c


def first_above(l, limit):
    for i, v in enumerate(l):
        if v > limit:
            return v + i
    else:
        return limit


def counted_above(l, limit):
    n = 0
    for v in l:
        if v < limit:
            continue
        n += 1
    return n * 0.5


def drained(l, v):
    while l:
        v = v + l.pop()
    return v


def flag(v):
    if v > 0.1:
        return True
    return False


def maybe(v):
    if v > 0.1:
        return v
    return None


def pair(v, w):
    if v > w:
        return v, w
    return w, v
"""
