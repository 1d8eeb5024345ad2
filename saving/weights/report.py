"""What happened to the arrays of a weights file, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import LoadError, printable


@dataclass(repr=False)
class WeightsReport:
    """The result of :func:`gradtape.load_weights`; printed, it is a table.

    Attributes
    ----------
    path, layout
        The file, and the framework of its names and axes: ``"gradtape"``, ``"keras"`` or
        ``"pytorch"``.
    loaded
        The loaded variables, by path: the name in the file.
    cast
        Those whose dtype differs from the file's: ``("float16", "float32")``, from and to.
    pending
        The arrays that wait for a layer to be built, by name in the file: the layer's path.
    missing
        The variables that the file does not have; they are unchanged.
    unexpected
        The names in the file that the model does not have.
    wrong_shape, wrong_dtype
        By path: the model's shape or dtype, and the file's.
    left_out
        What the mapping left out, and what is not a weight, by name in the file: the reason.
    reordered
        The loaded variables whose features of flattened images were put into the model's order:
        from channel by channel, as in PyTorch. A mapping that gives the order of axes prevents it.

    Examples
    --------
    >>> report = gt.saving.WeightsReport("model.h5", "gradtape", loaded={"kernel": "kernel"})
    >>> report.ok
    True
    >>> print(report)
    model.h5 (gradtape): 1 loaded
    <BLANKLINE>
    in the model  in the file  what
    kernel        kernel       loaded
    """

    path: str
    layout: str
    loaded: dict[str, str] = field(default_factory=dict)
    cast: dict[str, tuple[str, str]] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    wrong_shape: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    wrong_dtype: dict[str, tuple[str, str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    reordered: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is missing, unexpected or wrong."""
        return not (self.missing or self.unexpected or self.wrong_shape or self.wrong_dtype)

    def counts(self) -> str:
        """Return the number of each kind, as text."""
        kinds = (
            "loaded pending missing unexpected wrong_shape wrong_dtype left_out"  # in this order
        ).split()
        told = [f"{len(getattr(self, x))} {x.replace('_', ' ')}" for x in kinds if getattr(self, x)]
        return ", ".join(told) or "nothing"

    def problems(self) -> Iterator[str]:
        """Yield the problems, one line each."""
        for path in self.missing:
            yield f"missing: {path}"
        for path, (own, other) in self.wrong_shape.items():
            yield f"wrong shape: {path} is {own}, the file has {other}"
        for path, (own, other) in self.wrong_dtype.items():
            yield f"wrong dtype: {path} is {own}, the file has {other}"
        for name in self.unexpected:
            yield f"unexpected: {printable(name)}"

    def table(self) -> str:
        """Return a table with a row for each variable and array; what is left out, by reason."""
        rows = [("in the model", "in the file", "what")]
        for path, name in self.loaded.items():
            cast = " from {} to {}".format(*self.cast[path]) if path in self.cast else ""
            order = ", features reordered" if path in self.reordered else ""
            rows.append((path, name, f"loaded{cast}{order}"))
        rows += [
            (path, name, "waits for the layer's first call") for name, path in self.pending.items()
        ]
        rows += [(path, "-", "missing") for path in self.missing]
        for kind, wrong in (("shape", self.wrong_shape), ("dtype", self.wrong_dtype)):
            rows += [
                (path, str(other), f"wrong {kind}: the model has {own}")
                for path, (own, other) in wrong.items()
            ]
        rows += [("-", name, "unexpected") for name in self.unexpected]
        for why in dict.fromkeys(self.left_out.values()):
            names = [name for name, reason in self.left_out.items() if reason == why]
            text = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
            rows.append(("-", text, f"left out: {why}"))
        cells = [[printable(cell) for cell in row] for row in rows]
        widths = [max(len(row[i]) for row in cells) for i in range(2)]
        lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in cells]
        return "\n".join([f"{self.path} ({self.layout}): {self.counts()}", "", *lines])

    def __repr__(self) -> str:
        return self.table()


class WeightsMismatch(LoadError, ValueError):
    """A file's weights do not fit the model, which is unchanged; ``report`` has the details."""

    def __init__(self, message: str, report: WeightsReport | None = None) -> None:
        Exception.__init__(self, message)  # of several lines, in which all names are printable
        self.report = report
