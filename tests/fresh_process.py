"""Running saved files in an interpreter that has never seen the code that made them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

# Run here and there, so that both sides compute the same: outputs, then gradients of two orders
# with respect to the floating inputs and all trainable variables.
PROBE = """
import numpy as np
import gradtape as gt

def leaves(tree):
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (list, tuple)):
        return [leaf for item in tree for leaf in leaves(item)]
    return [tree]

def total(tensors):
    result = gt.constant(0.0, dtype="float64")
    for i, x in enumerate(tensors):
        if x.dtype.kind == "c":
            x = gt.real(x) + gt.imag(x)
        if x.dtype.kind == "f":
            result = result + gt.sum(gt.cast(gt.sin(x * (i + 1.5)), "float64"))
    return result

def probe(module, method, arrays, keywords):
    function = module if method == "__call__" else getattr(module, method)
    inputs = [gt.constant(array) for array in arrays]
    sources = [x for x in inputs if x.dtype.kind in "fc"] + list(module.trainable_variables)
    with gt.GradientTape(persistent=True) as outer:
        outer.watch([x for x in sources if not isinstance(x, gt.Variable)])
        with gt.GradientTape(persistent=True) as inner:
            inner.watch([x for x in sources if not isinstance(x, gt.Variable)])
            outputs = leaves(function(*inputs, **keywords))
            target = total(outputs)
        first = inner.gradient(target, sources)
        again = total([g for g in first if g is not None])
    second = outer.gradient(again, sources)
    found = [x.numpy() for x in outputs]
    return found + [np.zeros(0) if g is None else g.numpy() for g in [*first, *second]]
"""

_namespace: dict[str, Any] = {}
exec(PROBE, _namespace)
probe = _namespace["probe"]


def run_isolated(code: str, *arguments: object) -> str:
    """Run code in a new isolated interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROBE + "import sys\n" + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def probe_isolated(path: Path, calls: list[tuple[str, list[Any], dict[str, Any]]]) -> list[Any]:
    """Load a file in a new isolated interpreter and return ``probe`` of each call."""
    inputs = {f"{i}_{j}": a for i, (_, arrays, _) in enumerate(calls) for j, a in enumerate(arrays)}
    given, made = path.with_suffix(".in.npz"), path.with_suffix(".out.npz")
    np.savez(given, **inputs)
    run_isolated(
        "path, given, made, calls = sys.argv[1:5]\n"
        "held, results = np.load(given), {}\n"
        "for i, (method, count, keywords) in enumerate(eval(calls)):\n"
        "    module = gt.load(path)\n"
        "    found = probe(module, method, [held[f'{i}_{j}'] for j in range(count)], keywords)\n"
        "    results |= {f'{i}_{j}': array for j, array in enumerate(found)}\n"
        "np.savez(made, **results)\n",
        path,
        given,
        made,
        [(method, len(arrays), keywords) for method, arrays, keywords in calls],
    )
    held = np.load(made)
    return [
        [held[name] for name in held.files if name.startswith(f"{i}_")] for i in range(len(calls))
    ]


def assert_same_bits(found: list[Any], expected: list[Any]) -> None:
    """Compare two lists of arrays bit for bit, shapes and dtypes included."""
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        got, want = np.asarray(got), np.asarray(want)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        assert got.tobytes() == want.tobytes(), (got, want)
