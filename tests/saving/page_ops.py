"""What docs/format-ops.md defines, as functions of arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "format-ops.md"


def definitions() -> dict[str, Callable[..., Any]]:
    """Run the code of the page, and return the ops that it defines by name."""
    space: dict[str, Any] = {}
    text = PAGE.read_text(encoding="utf-8")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line = text[: match.start()].count("\n") + 1
        exec(compile("\n" * line + match[1], str(PAGE), "exec"), space)
    made = {
        name: x
        for name, x in space.items()
        if callable(x) and getattr(x, "__module__", None) is None and name[0] != "_"
    }
    return {**space["OPS"], **made}
