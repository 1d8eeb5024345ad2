"""The table of a module's layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tensors.variable import Variable
from .calls import OUTPUT
from .freezing import is_frozen

if TYPE_CHECKING:
    from .module import Module

__all__ = ["summary"]


def summary(root: Module) -> str:
    """Return a table of the modules in a module, and of itself if it has variables of its own."""
    rows = [("Layer", "Output shape", "Parameters")]
    shown = [(path, x) for path, x in root.named_leaves() if not isinstance(x, Variable)]
    if _own(root) or not shown:
        shown.insert(0, (root.name, root))
    for path, module in shown:
        shape = vars(module).get(OUTPUT)
        output = "-" if shape is None else _open_batch(shape)
        label = f"{path} ({type(module).__name__}{_frozen(module)})"
        rows.append((label, output, f"{sum(v.size for v in _own(module)):,}"))
    total = sum(v.size for v in root.variables)
    trainable = sum(v.size for v in root.trainable_variables)
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows]
    rule = "-" * (sum(widths) + 4)
    lines.insert(1, rule)
    lines += [rule, f"Parameters: {total:,} ({trainable:,} trainable)"]
    return "\n".join([f"{type(root).__name__} {root.name!r}{_frozen(root)}", *lines])


def _own(module: Module) -> list[Variable]:
    return [leaf for _, leaf in module.own_leaves() if isinstance(leaf, Variable)]


def _frozen(module: Module) -> str:
    return ", frozen" if is_frozen(module) else ""


def _open_batch(shape: tuple[int, ...]) -> str:
    return str((None, *shape[1:]) if shape else ()).replace("None", "?")
