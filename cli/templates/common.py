"""What the distributions of all kinds have: metadata, a README, and a workflow for GitHub."""

from __future__ import annotations

COMMON = {
    "pyproject.toml": """\
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "$name"
version = "0.1.0"
description = "$what for gradtape"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["gradtape>=$version"$needs]

[project.optional-dependencies]
test = ["mypy>=1.10", "pytest>=8"$test_needs]

# gradtape finds the installed plugin by this entry point
[project.entry-points.$group]
$module = "$module.plugin"

[tool.setuptools.packages.find]
where = ["src"]

[tool.setuptools.package-data]
$module = ["py.typed"]

[tool.mypy]
strict = true
""",
    "README.md": """\
# $name

$what for [gradtape](https://pypi.org/project/gradtape/).

```python
$use
```

```console
$$ pip install -e ".[test]"
$$ gradtape plugins
$$ mypy src
$$ pytest
```
""",
    ".github/workflows/test.yml": """\
name: test

on:
  push:
    branches: [main]
  pull_request:

permissions: {}

jobs:
  test:
    runs-on: ubuntu-latest
    permissions:
      contents: read
    strategy:
      matrix:
        python: ["3.11", "3.14"]
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with:
          persist-credentials: false
      - uses: actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0
        with:
          python-version: $${{ matrix.python }}
      - run: pip install -e ".[test]"
      - run: mypy src
      - run: pytest
""",
    "src/$module/py.typed": "",
}
