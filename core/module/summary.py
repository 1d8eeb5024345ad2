"""The table of a module's layers, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tensors.assignment import Stream
from ..tensors.notebooks import Text
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .attributes import is_frozen
from .calls import OUTPUT
from .contents import known_contents

if TYPE_CHECKING:
    from .module import Module

_HEAD = ("Layer", "Output shape", "Parameters")
#: The width of a table, and the least width of its first column.
_COLUMNS, _LEAST = 80, 24


class _Row:
    """A row of the table, for one module.

    Attributes
    ----------
    parent
        The number of the row of the module that contains it, if there is one.
    count
        The number of its parameters, including those inside it; ``None`` if an earlier row has it.
    """

    def __init__(
        self, path: str, module: Module, depth: int, parent: int | None, count: int | None
    ) -> None:
        self.path, self.module, self.depth = path, module, depth
        self.parent, self.count = parent, count

    def cells(self) -> tuple[str, str, str]:
        """Return the cells of the row."""
        shape = vars(self.module).get(OUTPUT)
        if self.count is None:
            count = "shared"
        else:
            count = f"{self.count:,}" if not is_unbuilt(self.module) else "?"
        kind = type(self.module).__name__
        label = f"{self.path} ({kind}{_given_name(self.module, self.path)}{_frozen(self.module)})"
        return label, "-" if shape is None else _open_batch(shape), count


def parameters(module: Module) -> Iterator[Variable]:
    """Return the variables in a module except the states of random numbers; each once.

    Modules come in the order of their attributes, each with all that is in it.
    """
    _ = module.submodules  # after it, the contents are known if they can be
    contents = known_contents(module)
    found = None if contents is None else contents.parameters
    if found is None:
        found = tuple(_within(module, set()))
        if contents is not None:
            contents.parameters = found
    return iter(found)


def text_table(root: Module) -> Text:
    """Return the table as text."""
    found = list(_rows(root))
    rows = [_HEAD]
    for row in found:
        label, shape, count = row.cells()
        rows.append(("  " * row.depth + label, shape, count))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    room = max(_COLUMNS - 4 - widths[1] - widths[2], _LEAST)
    rows = [(_shortened(a, room), b, c) for a, b, c in rows]
    widths[0] = min(widths[0], room)
    lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows]
    rule = "-" * (sum(widths) + 4)
    lines.insert(1, rule)
    return Text("\n".join([_title(root), *lines, rule, _total(root, found), *_note(root)]))


def html_table(root: Module) -> str:
    """Return the table as HTML, in the colours of the page that shows it."""
    import html  # for notebooks only

    found = list(_rows(root))
    line = "border-top:1px solid rgba(128,128,128,.4)"
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in _HEAD)
    rows = []
    for row in found:
        label, shape, count = (html.escape(cell) for cell in row.cells())
        indent = 0.5 + 1.5 * row.depth
        rows.append(
            f'<tr><td style="text-align:left;padding-left:{indent}em">{label}</td><td '
            f'style="text-align:left">{shape}</td><td style="text-align:right">{count}</td></tr>'
        )
    return (
        f'<table><caption style="text-align:left;font-weight:bold">{html.escape(_title(root))}'
        f"</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody><tfoot><tr>"
        f'<td colspan="3" style="text-align:left;{line}">{_end(root, found)}</td>'
        "</tr></tfoot></table>"
    )


def _rows(root: Module) -> Iterator[_Row]:
    """Yield the rows of a module, if it has parameters, and of those in it, outer ones first."""
    seen: set[int] = {id(root)}
    found: list[_Row] = []
    own = sum(v.size for v in _own(root, seen))
    waiting = [_Row(path, x, 0, None, 0) for path, x in _inside(root)][::-1]
    if own or not waiting:
        found.append(_Row(root.name, root, 0, None, own))
    while waiting:
        row = waiting.pop()
        here = len(found)
        found.append(row)
        if id(row.module) in seen:
            row.count = None
            continue
        seen.add(id(row.module))
        row.count = sum(v.size for v in _own(row.module, seen))
        waiting += [
            _Row(f"{row.path}/{path}", x, row.depth + 1, here, 0) for path, x in _inside(row.module)
        ][::-1]
    for row in reversed(found):
        if row.parent is not None and row.count:
            above = found[row.parent]
            above.count = (above.count or 0) + row.count
    yield from found


def _inside(module: Module) -> Iterator[tuple[str, Module]]:
    for path, leaf in module.own_leaves():
        if not isinstance(leaf, Variable):
            yield path, leaf


def _own(module: Module, seen: set[int]) -> Iterator[Variable]:
    states = getattr(module, "state_names", ())
    for path, leaf in module.own_leaves():
        if not isinstance(leaf, Variable) or id(leaf) in seen:
            continue
        seen.add(id(leaf))
        if not isinstance(leaf, Stream) and path not in states:
            yield leaf


def _within(module: Module, seen: set[int]) -> Iterator[Variable]:
    yield from _own(module, seen)
    for _, part in _inside(module):
        if id(part) not in seen:
            seen.add(id(part))
            yield from _within(part, seen)


def is_unbuilt(module: Any) -> bool:
    """Return whether a module is a layer that has not been called and creates its weights then."""
    return getattr(module, "built", True) is False


def has_future_weights(module: Any) -> bool:
    """Return whether a layer will have weights of its own, which do not exist yet."""
    return is_unbuilt(module) and getattr(module, "weight_names", ()) != ()


def _given_name(module: Module, path: str) -> str:
    """Return the name that the user gave a module, unless its path shows it."""
    name = module.name
    kind = type(module).__name__.lower()
    own = name.replace("_", "").rstrip("0123456789") == kind.rstrip("0123456789")
    return "" if own or name == path.rpartition("/")[2] else f" {name!r}"


def _shortened(text: str, room: int) -> str:
    """Return a text without its middle if it is longer than ``room``."""
    first = room // 4
    return text if len(text) <= room else f"{text[:first]}...{text[first + 3 - room :]}"


def _title(root: Module) -> str:
    return f"{type(root).__name__} {root.name!r}{_frozen(root)}"


def _total(root: Module, rows: list[_Row]) -> str:
    held = list(parameters(root))
    trainable = set(map(id, root.trainable_variables))
    training = sum(v.size for v in held if id(v) in trainable)
    later = ", before the first call" if any(is_unbuilt(row.module) for row in rows) else ""
    return f"Parameters: {sum(v.size for v in held):,} ({training:,} trainable){later}"


def _end(root: Module, rows: list[_Row]) -> str:
    """Return the last lines as HTML."""
    import html

    return "<br>".join(map(html.escape, [_total(root, rows), *_note(root)]))


def untrained_arrays(root: Module) -> list[str]:
    """Return the arrays of floats among the attributes of modules, with paths and shapes."""
    leaves = root.named_leaves()
    modules = {"": root, **{f"{k}/": x for k, x in leaves if not isinstance(x, Variable)}}
    return [
        f"{path}{name} {value.shape}"
        for path, module in modules.items()
        for name, value in vars(module).items()
        if isinstance(value, (np.ndarray, Tensor)) and value.ndim and value.dtype.kind in "fc"
        if not name.startswith("_")
    ]


def _note(root: Module) -> list[str]:
    arrays = untrained_arrays(root)
    if not arrays:
        return []
    return [f"Arrays, which do not train unless they are variables: {', '.join(arrays[:5])}"]


def _frozen(module: Module) -> str:
    return ", frozen" if is_frozen(module) else ""


def _open_batch(shape: Any) -> str:
    if isinstance(shape, list):  # of several outputs
        return ", ".join(map(_open_batch, shape))
    return str((None, *shape[1:]) if shape else ()).replace("None", "?")
