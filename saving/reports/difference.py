"""``Difference``: a report on how two files differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import printable
from .statistics import Distance
from .text import counted, number_text, strict_json

# A line says no more changes of one kind than this; JSON has all.
_MOST_LINES = 400


@dataclass(frozen=True)
class Change:
    """One difference.

    Attributes
    ----------
    what
        The path of a module or variable, the name of a function, signature or plugin.
    change
        ``"added"`` (only in the second file), ``"removed"`` or ``"changed"``.
    details
        What changed, as text.
    lines
        For a graph: a unified diff of its listing.
    distance
        For a variable of equal shape: the distance between the values.
    """

    what: str
    change: str
    details: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    distance: Distance | None = None


@dataclass(frozen=True, repr=False)
class Difference:
    """How two files differ: the result of :func:`diff`; printed, it is a text.

    It is true if there are differences.

    Attributes
    ----------
    a, b
        The paths of the files.
    modules, variables, functions, custom_gradients, signatures, requires
        Lists of changes.
    notes
        Differences that do not affect the contents: versions of the format and of plugins.

    Examples
    --------
    >>> bool(gt.saving.Difference("a.h5", "b.h5"))
    False
    """

    a: str
    b: str
    modules: list[Change] = field(default_factory=list)
    variables: list[Change] = field(default_factory=list)
    functions: list[Change] = field(default_factory=list)
    custom_gradients: list[Change] = field(default_factory=list)
    signatures: list[Change] = field(default_factory=list)
    requires: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(changes for _, changes in self._groups())

    def _groups(self) -> list[tuple[str, list[Change]]]:
        return [
            ("Modules", self.modules),
            ("Variables", self.variables),
            ("Functions", self.functions),
            ("Custom gradients", self.custom_gradients),
            ("Signatures", self.signatures),
            ("Plugins needed", self.requires),
        ]

    def table(self) -> str:
        """Return the differences as text.

        Returns
        -------
        str
            ``+`` marks what is only in the second file, ``-`` what is only in the first, ``~`` what
            is in both.
        """
        lines = [f"--- {printable(self.a)}", f"+++ {printable(self.b)}", *self.notes]
        for title, changes in self._groups():
            if not changes:
                continue
            lines += ["", title]
            for change in changes[:_MOST_LINES]:
                lines += _change_lines(change)
            if len(changes) > _MOST_LINES:
                lines.append(f"  and {len(changes) - _MOST_LINES:,} more")
        found = [f"{len(x):,} in {title.lower()}" for title, x in self._groups() if x]
        lines += ["", f"They differ: {', '.join(found)}." if found else "They hold the same."]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.table()

    def json(self) -> str:
        """Return the differences as JSON text.

        Returns
        -------
        str
            An object with the keys ``a``, ``b``, ``same``, ``notes``, and a list for each kind:
            ``modules``, ``variables``, ``functions``, ``custom_gradients``, ``signatures`` and
            ``requires``.
        """
        record: dict[str, Any] = {"a": self.a, "b": self.b, "same": not self, "notes": self.notes}
        for title, changes in self._groups():
            key = {"Plugins needed": "requires"}.get(title, title.lower().replace(" ", "_"))
            record[key] = [_change_record(change) for change in changes]
        return strict_json(record)


def _change_lines(change: Change) -> list[str]:
    sign = {"added": "+", "removed": "-"}.get(change.change, "~")
    details = "; ".join([*change.details, *_distance_words(change.distance)])
    return [
        f"  {sign} {change.what}" + (f": {details}" if details else ""),
        *(f"      {line}" for line in change.lines[:_MOST_LINES]),
        *(["      ..."] if len(change.lines) > _MOST_LINES else []),
    ]


def _distance_words(found: Distance | None) -> list[str]:
    if found is None:
        return []
    words = [
        f"{found.changed:,} of {counted(found.size, 'element')} changed",
        f"max abs {number_text(found.largest)}",
        f"relative L2 {number_text(found.relative)}",
    ]
    if any(found.nans):
        words.append(f"NaN {found.nans[0]:,} -> {found.nans[1]:,}")
    return [", ".join(words)]


def _change_record(change: Change) -> dict[str, Any]:
    record: dict[str, Any] = {
        "what": change.what,
        "change": change.change,
        "details": change.details,
    }
    if change.lines:
        record["diff"] = change.lines
    if change.distance is not None:
        far = change.distance
        record["distance"] = {
            "changed": far.changed,
            "size": far.size,
            "max_abs": far.largest,
            "relative_l2": far.relative,
            "nans": far.nans,
        }
    return record
