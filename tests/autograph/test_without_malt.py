"""What happens where the library that converts is not installed, and what importing costs."""

from __future__ import annotations

import subprocess
import sys

MISSING = """
import re, sys
sys.modules["malt"] = None  # as if it were not there
import gradtape as gt

INSTALL = re.compile(r'pip install "gradtape\\[autograph\\]"')

def plain(x):
    return x * 2.0

def decides(x):
    return x if x > 0 else -x

assert gt.function(plain, autograph=True)(gt.constant(1.0)).item() == 2.0
for ask in (
    lambda: gt.function(decides, autograph=True)(gt.constant(1.0)),
    lambda: gt.autograph.to_code(decides),
    lambda: gt.autograph.to_graph(decides),
):
    try:
        ask()
    except (gt.errors.TraceError, ImportError) as error:
        assert INSTALL.search(str(error)), error
    else:
        raise AssertionError(ask)
assert gt.autograph.do_not_convert(decides)(gt.constant(-1.0)).item() == 1.0

import gradtape.compat.tensorflow as tf

@tf.function
def f(x):
    while x < 10.0:
        x = x * 2.0
    return x

try:
    f(tf.constant(1.0))
except gt.errors.TraceError as error:
    assert INSTALL.search(str(error)), error
else:
    raise AssertionError
"""

UNUSED = """
import sys
import gradtape as gt

gt.function(lambda x: gt.cond(x > 0, lambda: x, lambda: -x))(gt.constant(1.0))
gt.layers.Dense(2)(gt.ones((1, 2)))
assert not [m for m in sys.modules if m.startswith(("malt", "gradtape.autograph"))]
"""


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_a_missing_extra_is_told_where_it_is_needed() -> None:
    run(MISSING)


def test_who_does_not_use_it_does_not_import_it() -> None:
    run(UNUSED)
