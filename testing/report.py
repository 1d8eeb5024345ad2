"""``Report``: what a check of a plugin's part found, for people, tests and JSON."""

from __future__ import annotations

import io
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any, ClassVar

PASSED, REFUSED, WRONG = "passed", "refused", "wrong"
#: The maximum number of rows of a report's table.
ROWS = 60


@dataclass(frozen=True)
class Report:
    """The findings of a check; its text is a table of everything that did not pass.

    Attributes
    ----------
    kind
        What was checked: ``"backend"``, ``"executor"``, ``"engine"`` or ``"format"``.
    name
        Its name.
    passed
        The names of what passed.
    refused
        What raised an error where an error is allowed, with the error.
    wrong
        What broke the contract, with the difference.
    seconds
        The duration in seconds.

    Examples
    --------
    >>> report = gt.testing.check_executor("plain", only=["sums"], show=False)
    >>> report.kind, report.name, report.passed, report.wrong
    ('executor', 'plain', ['sums'], {})
    """

    kind: str
    name: str
    passed: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    #: What the rows are, for the text.
    noun: ClassVar[str] = "checks"

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary that JSON can hold.

        Returns
        -------
        dict
            The attributes by name.
        """
        names = ("kind", "name", "passed", "refused", "wrong", "seconds")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        count = len(self.passed) + len(self.refused) + len(self.wrong)
        lines = [
            f"{self.kind} {self.name!r}: {count} {self.noun} in {self.seconds:.0f} s: "
            f"{len(self.passed)} passed, {len(self.refused)} refused, {len(self.wrong)} wrong"
        ]
        rows = [(WRONG, *row) for row in self.wrong.items()]
        rows += [(REFUSED, *row) for row in self.refused.items()]
        width = max((len(name) for _, name, _ in rows), default=0)
        for status, name, why in rows[:ROWS]:
            why = textwrap.shorten(why, 200, placeholder=" ...")
            lines.append(f"{status:<7}  {name:<{width}}  {why}")
        if rows[ROWS:]:
            lines.append(f"and {len(rows[ROWS:])} more: see its attributes")
        return "\n".join(lines)


class Findings:
    """Collects the outcomes of checks, and makes the report.

    Parameters
    ----------
    kind, name
        As in :class:`Report`.
    """

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        self.found: dict[str, dict[str, str]] = {PASSED: {}, REFUSED: {}, WRONG: {}}
        self._start = time.perf_counter()

    def note(self, what: str, status: str, why: str = "") -> None:
        """Remember the outcome of a check.

        Parameters
        ----------
        what
            The check.
        status
            ``PASSED``, ``REFUSED`` or ``WRONG``.
        why
            The reason.
        """
        self.found[status][what] = why

    def run(self, what: str, check: Callable[[], None]) -> None:
        """Run a check that raises ``AssertionError``, or another error, if something is wrong."""
        try:
            check()
        except Exception as error:
            self.note(what, WRONG, reason_of(error))
        else:
            self.note(what, PASSED)

    def report(self, show: bool, cls: type[Report] = Report, **options: Any) -> Any:
        """Return the report, and print it if ``show``."""
        seconds = time.perf_counter() - self._start
        passed, found = list(self.found[PASSED]), self.found
        made = cls(self.kind, self.name, passed, found[REFUSED], found[WRONG], seconds, **options)
        if show:
            print(made)
        return made


def reason_of(error: BaseException) -> str:
    """Return an error in one line; one of a check itself without its type."""
    text = " ".join(str(error).split())
    return text if isinstance(error, AssertionError) and text else f"{type(error).__name__}: {text}"


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what ops print, such as ``print`` itself, from appearing among reports."""
    with redirect_stdout(io.StringIO()):
        yield
