"""Write docs/scipy-sklearn.md, the page of SciPy and scikit-learn on tensors, from a table.

python docs/make_scipy_sklearn_page.py            # write the page
python docs/make_scipy_sklearn_page.py --check    # exit with 1 if it is not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "scipy-sklearn.md"
sys.path[:0] = [str(ROOT / "tests" / "standard"), str(ROOT / "docs")]

from consumers import Row, read  # noqa: E402
from generated_pages import markdown_rows, write_or_check  # noqa: E402

HEAD = '''# SciPy and scikit-learn on tensors

This page says which functions of SciPy and scikit-learn compute with tensors, and how to switch
that on. gradtape follows the [array API standard](https://data-apis.org/array-api/latest/).
Libraries that are written for this standard compute with tensors, and tapes record the
computation. SciPy reads an environment variable when it is imported. scikit-learn needs the same
variable, and a setting of its own:

```py
import os

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy or scikit-learn is imported

import numpy as np
import sklearn
from scipy import integrate, stats
from sklearn import metrics

import gradtape as gt

gt.set_default_dtype("float64")  # of the arrays that the libraries create
sklearn.set_config(array_api_dispatch=True)
```

A loss may contain functions of SciPy and scikit-learn. In this example, a power makes data
symmetric:

```py
data = gt.constant(np.random.default_rng(0).gamma(2.0, size=200))
power = gt.Variable(1.0)
optimizer = gt.training.Adam(0.02)
for _ in range(100):
    with gt.GradientTape() as tape:
        loss = stats.skew(data**power) ** 2
    optimizer.minimize(loss, [power], tape=tape)
assert stats.skew(data) > 1.0
assert abs(stats.skew(data**power)) < 0.01
```

Pass tensors for all arrays of a call, because the standard does not combine the arrays of several
libraries. You can pass Python's numbers as they are.

## Code that assigns to elements

A tensor never changes, and a third of these functions contain `x[index] = values`, which is an
error for a tensor. `gt.writable(x)` is an array of the standard to which the functions can write.
The tensor `x` stays as it is, and gradients reach `x`. The functions then return writable arrays,
whose attribute `value` is a tensor. All functions of gradtape accept writable arrays:

```py
def length(a):
    """Return the length of the parabola a * u**2 between 0 and 1."""

    def speed(u, a):
        return (1 + (2 * a * u) ** 2) ** 0.5

    zero, one = gt.writable(0.0), gt.writable(1.0)
    return integrate.tanhsinh(speed, zero, one, args=(gt.writable(a),)).integral


a = gt.Variable(1.0)
for _ in range(6):  # Newton's method
    with gt.GradientTape() as tape:
        excess = length(a) - 2.0
    a.assign_sub(excess / tape.gradient(excess, a))
assert abs(length(a) - 2.0) < 1e-12
```

Metrics of scikit-learn return Python's numbers, and a gradient cannot pass through a Python
number. With `multioutput="raw_values"`, most regression metrics return arrays:

```py
rng = np.random.default_rng(1)
x = gt.constant(rng.normal(size=(50, 3)))
target = x @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=50)
weights = gt.Variable(np.zeros(3))
for _ in range(100):
    with gt.GradientTape() as tape:
        given, found = gt.writable(target), gt.writable(x @ weights)
        score = metrics.r2_score(given, found, multioutput="raw_values")
        loss = gt.sum(-score)
    weights.assign_sub(0.5 * tape.gradient(loss, weights))
assert metrics.r2_score(given, found) > 0.99
```

## Searches

`scipy.optimize.elementwise` finds roots and minima by comparing values. The derivatives of the
search steps are not the derivatives of the result, so a search with tensors is an error inside a
tape. Search with arrays, and then take one step of Newton's method with tensors: this step has
the right gradient:

```py
from scipy.optimize import elementwise

p = gt.constant([2.0, 3.0])
with gt.GradientTape() as tape:
    tape.watch(p)
    found = elementwise.find_root(lambda u, p: u**2 - p, (0.0, 4.0), args=(p.numpy(),)).x
    root = found - (found**2 - p) / (2 * found)
assert np.allclose(tape.gradient(root, p), 0.5 / np.sqrt([2.0, 3.0]))
```

## What works

{counts}

In the calls, `x`, `m`, `tall` and so on are tensors, and `xp` is their namespace. The column
*arrays* says whether the call takes tensors, or needs `gt.writable`. The last column says whether
the call also runs in `gt.function`. Special functions work without the environment variable, and
[their page](special.md) lists more of them. `python docs/make_scipy_sklearn_page.py` writes this
page from the measured table [consumers.txt](../tests/standard/consumers.txt).
'''
STEPS = """
## Derivatives that are zero

These calls count, order or choose. The results are right, and the derivatives are zero:
"""
CONVERTED = """
## Conversions to NumPy

These calls convert tensors to NumPy's arrays or to Python's numbers, and no tensor can prevent
the conversion. The values are right, but the gradient is missing, wholly or in part.
`tape.gradient` then warns with a `BrokenPathWarning`, and a strict tape raises an error.
"""
REFUSED = """
## Errors and gradients of nan
"""
WHY_NAN = "a gradient of nan: it computes 0 / 0 in elements that it then replaces"


def counts(rows: list[Row]) -> str:
    """Return how many calls have each outcome, in words."""
    right = [row for row in rows if row.outcome in ("tensors", "writable", "steps")]
    writable = sum(row.outcome == "writable" for row in rows)
    converted = sum(row.outcome == "numpy" for row in rows)
    return f"""\
The suite makes {len(rows)} calls. It compares values with NumPy's, and gradients with finite
differences. {len(right)} calls have gradients; {writable} of them need `gt.writable`.
{converted} convert to NumPy's arrays. {len(rows) - len(right) - converted} are errors or have
gradients of nan."""


def page() -> Iterator[str]:
    """Give the lines of the page."""
    table = read()
    every = [row for rows in table.values() for row in rows]
    yield HEAD.replace("{counts}", counts(every))
    for name, rows in table.items():
        right = [row for row in rows if row.outcome in ("tensors", "writable")]
        if right:
            yield f"### {name}\n"
            yield from markdown_rows(
                ("call", "arrays", "in `gt.function`"),
                ((f"`{row.call}`", row.outcome, "yes" * row.traced) for row in right),
            )
            yield ""
    for head, outcome in ((STEPS, "steps"), (CONVERTED, "numpy")):
        yield head.lstrip()
        yield from markdown_rows(
            ("module", "calls"),
            (
                (name, ", ".join(f"`{row.call}`" for row in rows if row.outcome == outcome))
                for name, rows in table.items()
                if any(row.outcome == outcome for row in rows)
            ),
        )
        yield ""
    yield REFUSED.lstrip()
    refused = [row for row in every if row.outcome in ("error", "nan")]
    yield from markdown_rows(
        ("call", "why"), ((f"`{row.call}`", row.reason or WHY_NAN) for row in refused)
    )


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: "\n".join(page()) + "\n"}, sys.argv))
