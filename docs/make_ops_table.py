"""Write docs/ops.md, the table of ops, from the registry and the samples of the suite.

python docs/make_ops_table.py            # write the page
python docs/make_ops_table.py --check    # exit with 1 if it is not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "ops.md"
sys.path.insert(0, str(ROOT / "tests" / "ops"))

from portability import NOT_PORTABLE  # noqa: E402
from table import SAMPLES  # noqa: E402

import gradtape as gt  # noqa: E402
from gradtape.testing import Sample  # noqa: E402

HEAD = """# The table of ops

Written by `python docs/make_ops_table.py` from the registry and the samples in `tests/ops`; the
suite fails if it is out of date, or if an op has no samples.

Every op here is checked on its samples by [`gradtape.testing.check_op`](testing.md): gradients of
first and second order against finite differences, the shape rule against real results, traces with
known and unknown sizes against eager runs, saving and loading, single against double precision,
layouts, and arrays without elements.
"""
LEGEND = """
- *kernels*: the plugin that provides the op, whose kernel serves every backend, and the backends
  with a kernel of their own for it.
- *gradient of*: the inputs that have a gradient rule; "-" if the op has none.
- *2nd order*: whether the gradient of the gradient is checked too.
- *dtypes*: what the samples hold. "float" is float64 and float32 (what draws numbers: either),
  "complex" complex128 and complex64.
- *portable*: whether the op and its gradients run on `array-api-strict`, which has the functions of
  the array API standard and no others.
"""
NAMES = {"f": "float", "c": "complex", "i": "int", "b": "bool"}


def own_ops() -> dict[str, Any]:
    """Return the ops that ship with gradtape, by name."""
    registry = gt.registry()
    return {
        name: op for name, op in sorted(registry.ops.items()) if registry.owner("op", name).ours
    }


def kernels(name: str) -> str:
    """Return the plugins that compute an op."""
    registry = gt.registry()
    others = sorted(backend for op, backend in registry.kernels if op == name)
    own = [b for b in others if registry.owner("kernel", (name, b)).ours]
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


def rows(header: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[str]:
    """Give the lines of a table."""
    yield f"| {' | '.join(header)} |"
    yield f"|{' --- |' * len(header)}"
    for row in body:
        yield f"| {' | '.join(row)} |"


def left_out() -> Iterator[tuple[str, str, str]]:
    """Give the checks that are left out for some sample of an op, with the reason."""
    for name, samples in sorted(SAMPLES.items()):
        reasons: dict[str, list[str]] = {}
        for sample in samples:
            for check, reason in sample.exempt.items():
                checks = reasons.setdefault(reason, [])
                if check not in checks:
                    checks.append(check)
        for reason, checks in reasons.items():
            yield f"`{name}`", ", ".join(checks), reason


def functions() -> Iterator[str]:
    """Give lines that list the public functions, those made of several ops included."""
    modules = {"gradtape": gt, **{f"gradtape.{m}": getattr(gt, m) for m in gt._OP_MODULES}}
    for title, module in modules.items():
        names = [name for name in dir(module) if not name.startswith("_")]
        made = "gradtape.plugins.ops", "gradtape.core.op", "gradtape.core.quick"
        public = sorted(
            name
            for name in (names if module is gt else module.__all__)
            if callable(found := getattr(module, name))
            and (getattr(found, "__module__", None) or type(found).__module__).startswith(made)
        )
        yield f"**{title}** ({len(public)}): {', '.join(f'`{name}`' for name in public)}"
        yield ""


def page() -> str:
    """Return the text of the page."""
    ops = own_ops()
    count = sum(op.differentiable for op in ops.values())
    lines = [HEAD, f"There are {len(ops)} ops; {count} of them have gradients.", LEGEND]
    header = ("op", "kernels", "gradient of", "2nd order", "dtypes", "portable")
    lines += rows(
        header,
        (
            (
                f"`{name}`",
                kernels(name),
                differentiated(op),
                second_order(op, SAMPLES[name]),
                dtypes(SAMPLES[name]),
                "see below" if name in NOT_PORTABLE else "yes",
            )
            for name, op in ops.items()
        ),
    )
    lines += ["", "## What is not portable", ""]
    lines += rows(("op", "reason"), ((f"`{n}`", why) for n, why in sorted(NOT_PORTABLE.items())))
    lines += ["", "## What is not checked", "", "For some samples, some checks are left out:", ""]
    lines += rows(("op", "checks", "reason"), left_out())
    lines += ["", "## Functions", "", "The public functions, many of them made of several ops.", ""]
    lines += functions()
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" in arguments:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
