"""Write docs/ops.md, the table of ops, from the registry and the samples of the suite.

python docs/make_ops_table.py            # write the page
python docs/make_ops_table.py --check    # exit with 1 if it is not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "ops.md"
sys.path[:0] = [str(ROOT / "tests" / "ops"), str(ROOT / "docs")]

from generated_pages import markdown_rows, write_or_check  # noqa: E402
from portability import FUNCTIONS_NOT_PORTABLE, NOT_PORTABLE  # noqa: E402
from table import (  # noqa: E402
    FUNCTIONS,
    NOT_SAMPLED,
    SAMPLES,
    as_called,
    composed,
    public_functions,
)

import gradtape as gt  # noqa: E402
from gradtape.plugin import Op  # noqa: E402
from gradtape.testing import Sample  # noqa: E402

HEAD = """# The table of ops

This page lists all ops and public functions: which of them have gradients, for which inputs, and
how each is checked. To read what a function computes, look it up in the API reference.

[`gradtape.testing.check_op`](testing.md) compares, on the samples of each op: first and
second-order gradients with finite differences, the shape rule with real results, traces with known
and unknown sizes with eager runs, and single with double precision. It also checks saving and
loading, layouts, and arrays without elements.

Values, dtypes and errors are NumPy's, with one intended difference: a list of Python numbers is
weak, like a single number. It takes the floating dtype of the other tensors. Nothing is rounded
when they are `float64`, and `float32` stays `float32`, whereas NumPy's lists are `float64`.

`python docs/make_ops_table.py` writes this page from the registry and the samples in
`testing/tables`. The test suite fails if the page is out of date, or if an op or a public function
has no samples.
"""
LEGEND = """
- *kernels*: the plugin that provides the op, whose kernel runs on every backend, and the backends
  with a separate kernel for it.
- *gradient of*: the inputs that have a gradient rule; "-" if the op has none.
- *2nd order*: whether the gradient of the gradient is checked too.
- *batching*: how `vmap` runs the op on many examples at once: "elementwise" (unchanged), by a
  "rule", or "-" if it cannot.
- *dtypes*: the dtypes of the samples. "float" is float64 and float32 (one of them for random ops),
  "complex" complex128 and complex64.
- *portable*: whether the op and its gradients run on `array-api-strict`, which has only the
  functions of the array API standard.
"""
FUNCTIONS_LEGEND = """
Public functions that are not ops themselves. Traces and saved files hold the ops that they call.

- *becomes*: the ops in traces of the function's samples, in order.
- *gradient*: whether gradients reach an input; the suite compares them with finite differences on
  the same samples.
- *2nd order*, *dtypes*, *portable*: as above.
"""
NAMES = {"f": "float", "c": "complex", "i": "int", "b": "bool"}


def own_ops() -> dict[str, Any]:
    """Return the ops that ship with gradtape, by name."""
    registry = gt.registry()
    return {
        name: op
        for name, op in sorted(registry.ops.items())
        if registry.owner("op", name).distribution == "gradtape"
    }


def kernels(name: str) -> str:
    """Return the plugins that compute an op."""
    registry = gt.registry()
    others = sorted(backend for op, backend in registry.kernels if op == name)
    own = [b for b in others if registry.owner("kernel", (name, b)).distribution == "gradtape"]
    return ", ".join([registry.owner("op", name).name, *own])


def differentiated(op: Any) -> str:
    """Return the inputs with a gradient rule."""
    if op.vjp is not None:
        return ", ".join(name.lstrip("*") for name in op.inputs)
    rules = op.rules or ()
    return ", ".join(x for x, rule in zip(op.inputs, rules, strict=False) if rule) or "-"


def second_order(op: Any, samples: Sequence[Sample]) -> str:
    """Return whether the second order is checked."""
    if not op.differentiable:
        return "-"
    return "yes" if any("second order" not in sample.exempt for sample in samples) else "no"


def dtypes(samples: Iterable[Sample]) -> str:
    """Return the kinds of arrays that the samples hold."""
    kinds = {x.dtype.kind for sample in samples for x in sample.inputs if hasattr(x, "dtype")}
    return ", ".join(text for kind, text in NAMES.items() if kind in kinds)


def batching(op: Op) -> str:
    """Return by what an op is batched."""
    if op.batch is None:
        return "-"
    return "elementwise" if op.batch == "elementwise" else "rule"


# -- functions made of ops -------------------------------------------------------------------------


def arrays_of(sample: Sample) -> list[Any]:
    """Return a sample's arrays as tensors."""
    return [gt.constant(x) for x in sample.inputs if hasattr(x, "dtype")]


def results_of(name: str, sample: Sample, tensors: Sequence[Any]) -> list[Any]:
    """Call a function with tensors in place of a sample's arrays."""
    rest = iter(tensors)
    fed = sample.feed(*(next(rest) if hasattr(x, "dtype") else x for x in sample.inputs))
    results = as_called(name)(*(fed if isinstance(fed, tuple) else (fed,)), **sample.params)
    return list(results) if isinstance(results, (list, tuple)) else [results]


def made_of(name: str) -> str:
    """Return the ops that a function becomes: those in a trace of each of its samples."""
    found: dict[str, None] = {}
    for sample in FUNCTIONS[name]:
        if "traced" in sample.exempt:
            return "whatever its values make it: it is not traced"
        run = gt.function(lambda tensors, sample=sample: results_of(name, sample, tensors))
        nodes = run.get_concrete_function(arrays_of(sample)).graph.nodes
        found.update(dict.fromkeys(node.op.name for node in nodes if isinstance(node.op, Op)))
    return ", ".join(f"`{op}`" for op in found) or "a constant"


def followed(name: str, check: str) -> bool:
    """Return whether gradients reach an input, and are checked, for some sample of a function.

    The suite runs the checks on the very same samples: see tests/ops/test_every_function.py.
    """
    for sample in FUNCTIONS[name]:
        tensors = arrays_of(sample)
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        with gt.GradientTape() as tape:
            tape.watch(sources)
            results = [y for y in results_of(name, sample, tensors) if y.dtype.kind in "fc"]
        if not results or not sources or check in sample.exempt:
            continue
        if any(g is not None for g in tape.gradient(results, sources)):
            return True
    return False


def function_row(name: str) -> tuple[str, ...]:
    """Return the table's row for a function."""
    gradient, second = (followed(name, check) for check in ("gradients", "second order"))
    return (
        f"`{name}`",
        made_of(name),
        "yes" if gradient else "-",
        "yes" if second else "-",
        dtypes(FUNCTIONS[name]) or "-",
        "see below" if name in FUNCTIONS_NOT_PORTABLE else "yes",
    )


# -- the page --------------------------------------------------------------------------------------


def left_out(table: Mapping[str, Sequence[Sample]]) -> Iterator[tuple[str, str, str]]:
    """Give the checks that are left out for some sample in a table, with the reason."""
    for name, samples in sorted(table.items()):
        reasons: dict[str, list[str]] = {}
        for sample in samples:
            for check, reason in sample.exempt.items():
                checks = reasons.setdefault(reason, [])
                if check not in checks:
                    checks.append(check)
        for reason, checks in reasons.items():
            yield f"`{name}`", ", ".join(checks), reason


def all_names() -> Iterator[str]:
    """Give lines that list the public functions by module, other names of them included."""
    modules: dict[str, list[str]] = {}
    for path in public_functions():
        module, _, name = path.rpartition(".")
        modules.setdefault(f"gradtape.{module}".rstrip("."), []).append(name)
    for title, names in modules.items():
        yield f"**{title}** ({len(names)}): {', '.join(f'`{name}`' for name in sorted(names))}"
        yield ""


def counts(ops: Mapping[str, Op], table: Sequence[Sequence[str]]) -> str:
    """Return how many ops and functions there are, in words."""
    functions = public_functions()
    made = {id(functions[name]) for name in composed()}
    called = {
        path.rpartition(".")[2] if id(function) not in made else path: function
        for path, function in functions.items()
    }
    public = {name for name in ops if name in called}
    smooth = {name for name, op in ops.items() if op.differentiable}
    composite = sum(row[2] == "yes" for row in table)
    return (
        f"- {len(ops)} primitive ops, each a record of kernel, gradient rules and shape rule;\n"
        f"  {len(smooth)} of them have gradients.\n"
        f"- {len(public)} of the ops are public functions of the same name, {len(public & smooth)} "
        "of these with gradients;\n  the others are what gradients and functions are made of.\n"
        f"- {len(table)} further public functions are made of several ops; gradients flow through "
        f"{composite} of them.\n"
        f"- So {len(public & smooth) + composite} public functions can be differentiated, and "
        f"{len(smooth) + composite} ops and functions in all.\n  A second name for the same "
        f"function counts nowhere; with those there are {len(functions)} public names.\n"
        f"- {len(NOT_SAMPLED)} more names have tests of their own and no samples: most draw from "
        "the generator that\n  `gradtape.random` shares."
    )


def page() -> str:
    """Return the text of the page."""
    ops = own_ops()
    table = [function_row(name) for name in sorted(FUNCTIONS)]
    lines = [HEAD, counts(ops, table), "", "## Ops", LEGEND]
    header = ("op", "kernels", "gradient of", "2nd order", "batching", "dtypes", "portable")
    lines += markdown_rows(
        header,
        (
            (
                f"`{name}`",
                kernels(name),
                differentiated(op),
                second_order(op, SAMPLES[name]),
                batching(op),
                dtypes(SAMPLES[name]),
                "see below" if name in NOT_PORTABLE else "yes",
            )
            for name, op in ops.items()
        ),
    )
    lines += ["", "## Functions made of ops", FUNCTIONS_LEGEND]
    lines += markdown_rows(
        ("function", "becomes", "gradient", "2nd order", "dtypes", "portable"), table
    )
    lines += ["", "## What is not portable", ""]
    reasons = sorted({**NOT_PORTABLE, **FUNCTIONS_NOT_PORTABLE}.items())
    lines += markdown_rows(
        ("op or function", "reason"), ((f"`{name}`", why) for name, why in reasons)
    )
    lines += ["", "## What is not checked", "", "For some samples, some checks are left out:", ""]
    exempt = [*left_out(SAMPLES), *left_out(FUNCTIONS)]
    lines += markdown_rows(("op or function", "checks", "reason"), exempt)
    lines += ["", "These functions have no samples:", ""]
    untold = ((f"`{name}`", why) for name, why in sorted(NOT_SAMPLED.items()))
    lines += markdown_rows(("function", "reason"), untold)
    lines += ["", "## All public names", ""]
    lines += all_names()
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page()}, sys.argv[1:]))
