"""The tables of docs/coming-from.md: both columns run, and give the same values."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).parents[1] / "docs" / "coming-from.md"
TABLE = re.compile(r"<!-- table: (\w+) -->\n\n(.*?)\n\n", re.DOTALL)
ROW = re.compile(r"^\| `(.+)` \| `(.+)` \|$", re.MULTILINE)


def rows() -> Iterator[tuple[str, str, str]]:
    for match in TABLE.finditer(PAGE.read_text("utf-8") + "\n\n"):
        found = ROW.findall(match[2])
        assert len(found) == match[2].count("\n") - 1, f"a row of {match[1]} is not code | code"
        for left, right in found:
            yield match[1], left, right


ROWS = list(rows())


def given() -> dict[str, Any]:
    """Return the names of the page's first block."""
    names: dict[str, Any] = {}
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[1], names)
    return names


def of_torch(names: dict[str, Any]) -> Callable[[Any], Any]:
    names["torch"] = torch = importlib.import_module("torch")
    importlib.import_module("torch.utils.checkpoint")
    return torch.tensor


def of_jax(names: dict[str, Any]) -> Callable[[Any], Any]:
    names["jax"] = jax = importlib.import_module("jax")
    names["jnp"] = importlib.import_module("jax.numpy")
    importlib.import_module("jax.flatten_util")
    return lambda a: jax.numpy.asarray(a, a.dtype)


def of_autograd(names: dict[str, Any]) -> Callable[[Any], Any]:
    names["autograd"] = importlib.import_module("autograd")
    names["anp"] = importlib.import_module("autograd.numpy")
    importlib.import_module("autograd.misc")
    return np.asarray


def of_keras(names: dict[str, Any]) -> Callable[[Any], Any]:
    os.environ.setdefault("KERAS_BACKEND", "jax")
    names["keras"] = keras = importlib.import_module("keras")
    return lambda a: keras.ops.convert_to_tensor(a, "float32" if a.dtype.kind == "f" else "int32")


def of_tensorflow(names: dict[str, Any]) -> Callable[[Any], Any]:
    """TensorFlow's names as gradtape has them: the page promises that its code runs so."""
    names["tf"] = tf = importlib.import_module("gradtape.compat.tensorflow")
    return tf.constant


LIBRARIES = {
    "torch": of_torch,
    "jax": of_jax,
    "autograd": of_autograd,
    "keras": of_keras,
    "tensorflow": of_tensorflow,
}


def values(result: Any) -> list[Any]:
    """Return the arrays of a result, whichever library made it."""
    if isinstance(result, (list, tuple)):
        return [x for item in result for x in values(item)]
    return [np.asarray(result.detach() if hasattr(result, "detach") else result)]


@pytest.mark.parametrize(("library", "left", "right"), ROWS, ids=[f"{a}: {c}" for a, _, c in ROWS])
def test_both_columns_of_a_row_give_the_same(library: str, left: str, right: str) -> None:
    names = given()
    ours = values(eval(right, names))
    theirs = dict(names)
    try:
        convert = LIBRARIES[library](theirs)
    except ImportError:
        pytest.skip(f"to compare, pip install {library}")
    with theirs["jax"].enable_x64() if library == "jax" else nullcontext():
        for name in ("x", "v", "rows", "labels"):
            theirs[name] = convert(np.asarray(names[name]))
        expected = values(eval(left, theirs))
    assert len(ours) == len(expected)
    for one, other in zip(ours, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_each_library_has_a_table() -> None:
    assert {library for library, _, _ in ROWS} == set(LIBRARIES)
