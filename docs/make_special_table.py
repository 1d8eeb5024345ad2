"""Write docs/special.md, the page of SciPy's special functions, from the plugin's tables.

python docs/make_special_table.py            # write the page
python docs/make_special_table.py --check    # exit with 1 if it is not up to date
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "special.md"
sys.path.insert(0, str(ROOT / "docs"))

from generated_pages import markdown_rows, write_or_check  # noqa: E402

from gradtape.plugins.scipy.building import NAMES, NoDerivative, UfuncRow  # noqa: E402
from gradtape.plugins.scipy.plugin import INSTEAD, building  # noqa: E402

HEAD = """# Special functions

The functions of `scipy.special` accept tensors, under SciPy's names (`pip install
"gradtape[scipy]"`). The functions are NumPy ufuncs, and NumPy passes tensors in a call on to
gradtape:

```python
import numpy as np
from scipy import special

import gradtape as gt

x = gt.constant(np.array([0.5, 1.5]))
with gt.GradientTape() as tape:
    tape.watch(x)
    y = special.jv(1, x) * special.gammainc(2.0, x)
assert isinstance(y, gt.Tensor)
assert tape.gradient(y, x).shape == (2,)
assert gt.hessian(lambda x: gt.sum(special.erfcx(x)))(x).shape == (2, 2)
```

The functions run in traces, in `vmap`, in forward mode and in saved files; the readers of such a
file need SciPy too. The kernels are SciPy's own, and run on the host. JAX's compiled programs
call back to the host, except for functions that `jax.scipy.special` has. An export to ONNX or
StableHLO raises an error that names the op. Results have the precision of the arguments, also if
SciPy computes in double precision only.

For some arguments, such as the order of a Bessel function, the derivative has no closed form. A
gradient with respect to such an argument is an error. All other arguments have a formula:

```python
order = gt.Variable(1.0, dtype="float64")
with gt.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = special.jv(order, x)
assert tape.gradient(y, x).shape == (2,)
try:
    tape.gradient(y, order)
except gt.errors.GradientError as error:
    assert "no formula is known for the derivative with respect to 'v'" in str(error)
```

`gt.stop_gradient(order)` makes such an argument a constant. You can also register a rule of your
own, for instance by finite differences, with `gt.register_gradient("scipy::jv", override=True)`.

The test suite compares first and second derivatives with those of mpmath, computed with 60
digits. For functions that mpmath lacks, the suite compares with differences of SciPy's values.
The relative errors are below 1e-11 (first derivatives) and 1e-10 (second derivatives) in the
ranges of [special_references.py](../tests/plugins/special_functions/special_references.py). For a
few functions, that file states other bounds.

Some values of SciPy 1.17 are inaccurate, and derivatives cannot be better: `itairy` has errors of
1e-5, `ncfdtrinc` of 1e-3, and `obl_rad2` and `pro_rad2` are wrong for some `x` between 1 and 2.
SciPy has no derivative of the first derivative of `smirnov` and `smirnovi`: a second derivative
is an error.

At a few points a formula contains 0 / 0, or a product of 0 and infinity. At these points a
derivative exists, but the computed derivative is nan:

| function | where | order |
| --- | --- | --- |
| `pseudo_huber` | `delta = 0` | 1 |
| `rel_entr`, `kl_div` | `x = 0`, in a Hessian with both arguments | 2 |
| `binom` | negative whole `n`, where SciPy's values are nan | 1 |
| `poch` | `z` and `z + m` are both 0 or negative whole numbers | 1 |
| `betainc`, `bdtr`, `nbdtr` and their complements | 1 | 2 |
| `voigt_profile` | `sigma = 0` | 1 |
| `besselpoly` | `a = 0` | 1 |
| `berp`, `beip`, `it2j0y0`, `it2i0k0`, `it2struve0` | 0 | 1 |
| `ber`, `bei`, and `struve` and `modstruve` of order 0 | 0 | 2 |
| `elliprj`, `elliprc` | negative `p` or `y`, which mean principal values | 1 |
| `lpmv` | 1 and -1 | 1 |
"""
PYTHON = """
## Functions that read values

SciPy's Python functions convert their arguments to arrays, and no tensor can prevent the
conversion. Gradients do not pass through these functions: inside a tape they warn, and on a
strict tape they raise an error. Use instead:
"""
LEGEND = """
## Derivatives

`python docs/make_special_table.py` writes this section from the tables in
[plugins/scipy](../plugins/scipy/building.py).

In the formulas, `out` is the result. Other names are the arguments, and functions of
NumPy and SciPy. Further functions are:
"""
TABLE = """
A dash means that no formula is known. Functions with several results have one derivative for each.
"""


def shown(formula: object) -> str:
    """Return a formula as the text of a table's cell."""
    if isinstance(formula, NoDerivative):
        return f"- ({formula.reason})"
    parts = formula if isinstance(formula, tuple) else (formula,)
    return ", ".join(f"`{ast.unparse(ast.parse(str(part), mode='eval'))}`" for part in parts)


def rows(row: UfuncRow) -> Iterator[tuple[str, ...]]:
    """Give the lines of a function, one for each argument."""
    for i, (argument, formula) in enumerate(row.formulas.items()):
        name = "" if i else f"`{row.name}({', '.join(row.formulas)})`"
        yield name, f"`{argument}`", shown(formula), "" if i else row.source


def helpers() -> Iterator[tuple[str, str]]:
    """Give the functions in formulas that neither NumPy nor SciPy has."""
    for name, item in sorted(NAMES.items()):
        own = getattr(item, "__name__", "") == f"_{name}"
        if own and item.__module__ != "gradtape.plugins.scipy.building":
            signature = ", ".join(inspect.signature(item).parameters)
            text = item.__doc__.splitlines()[0].removeprefix("Return ")
            yield f"`{name}({signature})`", text


def counts() -> str:
    """Return how many functions there are, in words."""
    public = [row for row in building().FUNCTIONS.values() if not row.private]
    smooth = [row for row in public if row.differentiable]
    full = [row for row in smooth if len(row.differentiable) == len(row.formulas)]
    return (
        f"{len(public)} functions accept tensors. {len(smooth)} of them have derivatives, "
        f"{len(full)} with respect to all arguments. `zeta` and `lambertw` call ufuncs that are "
        "private to SciPy, and work too."
    )


def page() -> str:
    """Return the text of the page."""
    lines = [HEAD, counts(), PYTHON]
    instead = [
        (f"`{module}.{name}`", f"`{text}`")
        for module, table in INSTEAD.items()
        for name, text in table.items()
    ]
    lines += [*markdown_rows(("function", "instead"), instead), LEGEND]
    lines += [*markdown_rows(("name", "what it returns"), helpers()), TABLE]
    header = ("function", "argument", "derivative", "source")
    lines += markdown_rows(
        header, (line for row in building().FUNCTIONS.values() for line in rows(row))
    )
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page()}, sys.argv[1:]))
