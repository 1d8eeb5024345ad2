"""What is read from instructions is the same in each version of Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gradtape.core.base.user_code import instructions as read
from gradtape.core.base.user_code import uses
from gradtape.core.base.user_code.instructions import (
    instructions,
    is_call,
    is_given,
    is_item_store,
    names_at,
    path_written,
    paths_to_sources,
)

#: The pairs of instructions on one line that are one from Python 3.13 on, as 3.14 names them.
PAIRS = {
    ("LOAD_FAST", "LOAD_FAST"): "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
    ("STORE_FAST", "LOAD_FAST"): "STORE_FAST_LOAD_FAST",
    ("STORE_FAST", "STORE_FAST"): "STORE_FAST_STORE_FAST",
}


def joined(code: Any) -> Any:
    """Yield instructions as Python 3.14 has them: pairs on one line are one."""
    found = list(PLAIN(code))
    while found:
        one = found.pop(0)
        then = found[0] if found else one
        both = PAIRS.get((one.opname, then.opname))
        if both and then.positions.lineno == one.positions.lineno:
            found.pop(0)
            yield one._replace(opname=both, argval=(one.argval, then.argval))
        elif one.opname == "LOAD_FAST":
            yield one._replace(opname="LOAD_FAST_BORROW")
        else:
            yield one


PLAIN = read.dis.get_instructions


@pytest.fixture(params=["here", "3.14"], autouse=True)
def version(request: Any, monkeypatch: Any) -> Iterator[None]:
    caches = (read.instructions, read.is_given, read.path_written, uses.use_of)
    for cache in caches:
        cache.cache_clear()
    if request.param == "3.14":
        monkeypatch.setattr(read.dis, "get_instructions", joined)
    yield
    for cache in caches:
        cache.cache_clear()


STORES = {
    "a[0] = x": ["a"],
    "a[i] = x": ["a"],
    "a[i] += x": ["a"],
    "a[i:] = x": ["a"],
    "a[b, c] = x": ["a"],
    "a[b[0]][c] = x": ["a"],
    "self.q[0] = x": ["self", "q"],
    "b = x; a[i] = b": ["a"],
    "x = foo(c, a[b, c[0]]); a[i] = x": ["a"],
    "a[i], b = x, c": ["a"],
}


def code_of(body: str, names: str = "self, a, x, i, b, c") -> Any:
    scope: dict[str, Any] = {}
    exec(f"def f({names}):\n    {body}\n    return 0", scope)
    return scope["f"].__code__


@pytest.mark.parametrize("body", STORES)
def test_the_array_is_named_to_whose_elements_code_assigns(body: str) -> None:
    code = code_of(body)
    (store,) = (x for x in instructions(code) if is_item_store(x))
    assert names_at(code, store) == STORES[body]


@pytest.mark.parametrize("body", ["foo(x, a)", "foo(x, a[b, c[0]])", "foo(*a, b=x)"])
def test_the_function_is_named_that_code_calls(body: str) -> None:
    code = code_of(body)
    call = [x for x in instructions(code) if is_call(x)][-1]
    assert names_at(code, call) == ["foo"]


USES = {
    "log = x": "kept",
    "log = []\n    log.append(x)": "kept",
    "log = []\n    log.append(x)\n    y = log[0] * 2": "local",
    "a.append(x)": "kept",
    "print(x)": "shown",
    "y = i < x": "shown",
    "y = i * x": "",
    "y = x or i": "",
    "y = x; z = y * 2": "",
    "y = x; z = y": "kept",
    "y = x; print(y)": "shown",
    "return i, x * 2": "",
    "return i, foo(x)": "",
    "return i, f'{x}'": "shown",
    "q = foo(i); q[0][1] = x; y = q[0] * 2": "local",
    "return x": "returned",
    "return i, x": "returned",
    "return i * x": "",
    "return foo(x)": "",
    "a[i] = x": "kept",
    "a[i:] = x": "kept",
    "self.q = x": "kept",
    "q = foo(i)\n    q.r = x\n    y = q.s * 2": "local",
    "q = foo(i)\n    q[1:] = x\n    y = q[0] * 2": "local",
    "y = (i, x); print(y)": "shown",
    "y = f'{i} {x!r}'": "shown",
}


@pytest.mark.parametrize("body", USES)
def test_what_becomes_of_a_value(body: str) -> None:
    code = code_of(body)
    (load,) = (x for x in instructions(code) if x.opname.startswith("LOAD_") and x.argval == "x")
    assert uses.use_of(code, load.offset) == USES[body]


def test_an_argument_to_which_code_only_adds_is_given() -> None:
    assert is_given(code_of("a += x"), "a")
    assert is_given(code_of("a[i] += x; b = i"), "a")
    assert not is_given(code_of("a = x"), "a")
    assert not is_given(code_of("i = b; a = i"), "a")
    assert not is_given(code_of("y = x"), "y")


def test_objects_are_found_in_long_code() -> None:
    many = "; ".join(f"x{i} = i" for i in range(300))  # numbers above 255 have a prefix
    code = code_of(
        f"{many}\n    q = foo(i)\n    for row in q.r:\n        {many}\n        row[0] = x"
    )
    (store,) = (x for x in instructions(code) if is_item_store(x))
    assert [*map(str, path_written(code, store.offset))] == ["row"]
    assert [[*map(str, path)] for path in paths_to_sources(code, "row")] == [["q", ".r"]]
