"""``gradtape plugin new``: a starting point, a distribution with an op, its gradient and tests."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import keyword
import re
from pathlib import Path
from string import Template

from ..core.extend import public

__all__ = ["new_plugin"]

FILES = {
    "pyproject.toml": """\
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "$name"
version = "0.1.0"
description = "An op for gradtape"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["gradtape>=$version"]

[project.optional-dependencies]
test = ["pytest>=8"]

# gradtape finds the installed plugin by this entry point
[project.entry-points.gradtape]
$module = "$module.ops"

[tool.setuptools.packages.find]
where = ["src"]
""",
    "README.md": """\
# $name

An op for [gradtape](https://pypi.org/project/gradtape/), with its gradient:

```python
import gradtape as gt
from $module import soft_abs

x = gt.constant([3.0, -4.0])
assert soft_abs(x, width=4.0).shape == (2,)
assert gt.grad(lambda x: gt.sum(soft_abs(x)))(x).shape == (2,)
```

A file that is saved with it names the op and this distribution. If the distribution is not
installed, loading the file raises an error that names it.

```console
$$ pip install -e ".[test]"
$$ gradtape plugins
$$ pytest
```
""",
    "src/$module/__init__.py": '''\
"""An op for gradtape."""

from .ops import soft_abs

__all__ = ["soft_abs"]
''',
    "src/$module/ops.py": '''\
"""The plugin. gradtape imports this module and calls its hooks; the import computes nothing."""

import numpy as np
from gradtape.plugin import F, Op, hookimpl


def _kernel(xp, x, *, width=1.0):
    """Compute the op: xp is the array namespace (NumPy, CuPy, ...), x a raw array of it."""
    return xp.sqrt(x * x + float(width) ** 2) - float(width)


def _gradient(g, x, width):
    """Return the gradient with respect to x, computed by ops: it is differentiable and saved."""
    return g * F.conj(x / F.sqrt(x * x + float(width) ** 2))


def _infer(x, width):
    """Return the shape and dtype of the result without computing it, for traces."""
    return x.shape, np.result_type(x.dtype, 0.0)


soft_abs = Op(
    "$name::soft_abs",  # its name in files: never change what it computes
    _kernel,
    gradients={"x": _gradient},
    infer=_infer,
    batch="elementwise",
    doc="Return the absolute value, rounded at 0: ``sqrt(x * x + width * width) - width``.",
)


@hookimpl
def gradtape_ops():
    return [soft_abs]
''',
    "tests/test_ops.py": '''\
"""check_op on samples: gradients, traces, batches, files and dtypes."""

import gradtape as gt
import numpy as np
from gradtape.testing import Sample, check_op

from $module import soft_abs

SAMPLES = [
    Sample(np.array([-1.5, 0.0, 0.3, 2.0])),
    Sample(np.array([[0.5, -2.0, 1.0]]), width=0.5),
    Sample(np.array([0.5 + 0.3j, -1.0 + 0.2j])),
]


def test_the_op_does_all_that_an_op_must_do():
    assert set(check_op(soft_abs, SAMPLES).values()) == {"passed"}


def test_values():
    np.testing.assert_allclose(soft_abs([3.0, 0.0], width=4.0), [1.0, 0.0])
    assert soft_abs(gt.constant([1, 2])).dtype == np.float64


def test_gradtape_finds_the_plugin():
    owner = gt.registry().owner("op", "$name::soft_abs")
    assert owner is not None and owner.distribution == "$name"
''',
}


def new_plugin(name: str, parent: str) -> list[Path]:
    """Write a new distribution into the folder ``parent``/``name`` and return its files.

    Raises
    ------
    ValueError
        If the name is not valid for a distribution or its module, or is already in use.
    FileExistsError, FileNotFoundError
        If the folder already exists, or ``parent`` does not.
    """
    module = _module_of(name)
    folder = Path(parent) / name
    if folder.exists() or folder.is_symlink():
        raise FileExistsError(f"{folder} already exists; choose another name or remove it")
    if not Path(parent).is_dir():
        raise FileNotFoundError(f"{parent} is not an existing folder; create it first")
    version = ".".join(str(public("__version__")).split(".")[:2])
    values = {"name": name, "module": module, "version": version}
    written = []
    for path, text in FILES.items():
        target = folder / Template(path).substitute(values)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Template(text).substitute(values), encoding="utf-8")
        written.append(target)
    return written


def _module_of(name: str) -> str:
    """Return the name of a distribution's module; raise if the name is not valid or in use."""
    if not re.fullmatch(r"[a-z]([a-z0-9_-]*[a-z0-9])?", name):
        raise ValueError(
            f"{name!r} is not a valid name: use lower-case letters, digits, '-' and '_', start "
            "with a letter, and end with a letter or digit, as in 'my-ops'"
        )
    module = re.sub(r"[-_]+", "_", name)
    if keyword.iskeyword(module) or module == "tests":
        raise ValueError(f"{name!r} cannot be the name of a module; choose another name")
    try:
        taken = f"the distribution {importlib.metadata.distribution(name).name!r}"
    except importlib.metadata.PackageNotFoundError:
        taken = f"a module {module!r}" if importlib.util.find_spec(module) is not None else ""
    if taken:
        raise ValueError(f"{name!r} is in use: {taken} is already installed; choose another name")
    return module
