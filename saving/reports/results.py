"""The results of :func:`verify`: a check for each sample, and a report."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from .words import strict_json


@dataclass
class Check:
    """One golden case: the largest relative error of the outputs and of each order of gradients.

    Attributes
    ----------
    function, case
        The function's name, and a description of its sample inputs.
    errors
        The largest errors by name: ``"output"``, ``"gradient"``, ``"second gradient"``.
    exact
        Whether everything is equal bit for bit.
    problem
        The problem as text; empty if there is none.
    """

    function: str
    case: str
    errors: dict[str, float] = field(default_factory=dict)
    exact: bool = True
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether everything is within tolerance."""
        return not self.problem


@dataclass(repr=False)
class Report:
    """The result of :func:`verify`; printed, it is a table.

    Attributes
    ----------
    path, backend
        The file, and the backend that its functions ran on.
    checks
        One per golden case.
    skipped
        Functions without golden vectors, with the reason.

    Examples
    --------
    >>> gt.saving.Report("model.h5", "numpy").ok  # nothing was checked
    False
    """

    path: str
    backend: str
    checks: list[Check] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there was something to check, and all of it passed."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    def json(self) -> str:
        """Return the report as JSON text.

        Returns
        -------
        str
            An object with the keys ``path``, ``backend``, ``ok``, ``checks`` (``function``,
            ``case``, ``ok``, ``exact``, ``errors`` and ``problem`` of each) and ``skipped``.
        """
        record = asdict(self)
        record["checks"] = [{**asdict(check), "ok": check.ok} for check in self.checks]
        record["skipped"] = [{"function": f, "reason": reason} for f, reason in self.skipped]
        return strict_json({**record, "ok": self.ok})

    def table(self) -> str:
        """Return the report as text.

        Returns
        -------
        str
            A table with one line per golden case, followed by what was not checked. Results are
            ``exact``, ``close`` (within tolerance) or ``MISMATCH``.
        """
        columns = ("output", "gradient", "second gradient")
        rows: list[tuple[str, ...]] = [
            ("Function", "Sample", "Output", "Gradients", "2nd order", "Result")
        ]
        for check in self.checks:
            cells = [_number(check.errors.get(column)) for column in columns]
            result = "exact" if check.exact else "close"
            rows.append((check.function, check.case, *cells, result if check.ok else "MISMATCH"))
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines.insert(1, "-" * (sum(widths) + 10))
        lines += [f"{check.function}: {check.problem}" for check in self.checks if check.problem]
        lines += [f"{name}: not checked ({reason})" for name, reason in self.skipped]
        if not self.checks:
            lines.append("The file holds no golden vectors, so it proves nothing.")
        passed = sum(check.ok for check in self.checks)
        exact = sum(check.ok and check.exact for check in self.checks)
        lines.append(
            f"{passed} of {len(self.checks)} samples verified on {self.backend}, {exact} of them "
            "bit for bit."
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.table()


def _number(error: float | None) -> str:
    return "-" if error is None else "0" if error == 0 else f"{error:.1e}"
