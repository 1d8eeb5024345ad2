"""``Report`` and ``OpReport``: what checks of a plugin's parts found."""

from __future__ import annotations

import io
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any, ClassVar

PASSED, REFUSED, WRONG = "passed", "refused", "wrong"
#: The maximum number of rows of a report's table.
ROWS = 60
#: Up to how many checks the first line names those that passed.
FEW = 3


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

    _gradtape_internal = "noun"

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
        few = 0 < count <= FEW  # as after only=["solve"], which is an op, and no function of gt
        named = f" ({', '.join(self.passed)})" if few and self.passed else ""
        lines = [
            f"{self.kind} {self.name!r}: {count} {self.noun} in {self.seconds:.0f} s: "
            f"{len(self.passed)} passed{named}, {len(self.refused)} refused, "
            f"{len(self.wrong)} wrong"
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


class OpReport(dict[str, str]):
    """The outcome of each check of :func:`check_op` by its name.

    The report is a dictionary. An outcome is ``"passed"`` if at least one sample passed the check,
    and otherwise a reason. :func:`check_op` raises if a check fails, so a reason is one of two:

    * ``"refused: ..."``: the op, or a backend, raised an error where an error is allowed.
    * Any other: the check does not apply to the op (``"not elementwise"``), a sample leaves it out,
      or no other backend is installed. You need not act.

    Parameters
    ----------
    outcomes
        The outcomes by the names of the checks; none by default.

    Raises
    ------
    TypeError
        If ``outcomes`` is not a mapping.

    Examples
    --------
    >>> report = gt.testing.check_op(gt.sum, [gt.testing.Sample(np.ones((2, 3)), axis=0)])
    >>> report.ok, report.skipped["empty"]
    (True, 'not elementwise')
    """

    def __init__(self, outcomes: Mapping[str, str] | None = None) -> None:
        super().__init__(outcomes or {})

    @property
    def ok(self) -> bool:
        """Whether no check was refused; those that were skipped do not count."""
        return not self.refused

    @property
    def passed(self) -> list[str]:
        """The names of the checks that a sample passed."""
        return [check for check, outcome in self.items() if outcome == PASSED]

    @property
    def refused(self) -> dict[str, str]:
        """The checks whose runs the op refused, with the errors."""
        return {check: why for check, why in self.items() if why.startswith(f"{REFUSED}: ")}

    @property
    def skipped(self) -> dict[str, str]:
        """The checks that do not apply to the op, to its samples or to what is installed here."""
        known = {*self.passed, *self.refused}
        return {check: why for check, why in self.items() if check not in known}


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
