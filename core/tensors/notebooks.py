"""How shells and notebooks show texts and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

#: The most rows and columns to show; of longer axes, the first and last entries.
_MOST = 10


class Text(str):
    """A text of several lines, which shells and notebooks show as ``print`` does."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def table(title: str, values: Any = None) -> str:
    """Return values as an HTML table under a title; as text if they have more than two axes.

    Parameters
    ----------
    title
        The text above the table.
    values
        A NumPy array; ``None`` if there is nothing to show.
    """
    import html  # for notebooks only

    head = f"<div><code>{html.escape(title)}</code></div>"
    if values is None:
        return head
    if not 1 <= values.ndim <= 2 or not values.size:
        text = np.array2string(values, separator=", ", threshold=100)
        return f"{head}<pre>{html.escape(text)}</pre>"
    rows = np.atleast_2d(values)
    cells = [f"<td></td>{''.join(f'<th>{name}</th>' for name, _ in _shown(rows.shape[1]))}"]
    for name, i in _shown(rows.shape[0]):
        label = name if values.ndim == 2 else ""
        line = "".join(f"<td>{_text(rows, i, j)}</td>" for _, j in _shown(rows.shape[1]))
        cells.append(f"<th>{label}</th>{line}")
    return f"{head}<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"


def _shown(length: int) -> list[tuple[str, int | None]]:
    """Return the names and indices of the rows to show; the index of a gap is ``None``."""
    if length <= _MOST:
        return [(str(i), i) for i in range(length)]
    half = _MOST // 2
    ends = [*range(half), *range(length - half, length)]
    found: list[tuple[str, int | None]] = [(str(i), i) for i in ends]
    return [*found[:half], ("…", None), *found[half:]]


def _text(rows: Any, i: int | None, j: int | None) -> str:
    if i is None or j is None:
        return "…"
    value = rows[i, j]
    import html

    return html.escape(f"{value:.4g}" if rows.dtype.kind in "fc" else str(value))
