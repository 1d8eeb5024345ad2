"""Ask plugins, whose code may fail, exit, print or hang, so that reports on them always appear."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from threading import Timer
from typing import Any

from ..core.extend import DISABLE, HOST, raised, reporting

# How long a plugin may take until it is named, in seconds.
_PATIENCE = 10.0


@contextmanager
def quietly() -> Iterator[None]:
    """Let plugins be imported in a block without warnings or errors, which a report has.

    What they print goes to standard error, since the report may be JSON. A plugin that takes very
    long is named there, too.

    Yields
    ------
    None
    """
    timer = Timer(_PATIENCE, _name_slow)
    timer.daemon = True
    timer.start()
    try:
        with warnings.catch_warnings(), redirect_stdout(sys.stderr), reporting():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    finally:
        timer.cancel()


def _name_slow() -> None:
    info = HOST.running
    if info is not None and sys.stderr is not None:
        print(
            f"gradtape: still waiting for {info}, which is imported; to leave it out, press Ctrl-C "
            f"and set {DISABLE}={info.choice}",
            file=sys.stderr,
            flush=True,
        )


def answer_of(function: Callable[[], Any]) -> tuple[Any, str]:
    """Return what a plugin's function returns, or why it returned nothing.

    Parameters
    ----------
    function
        A function without arguments.

    Returns
    -------
    answer : object
        ``None`` if there is a problem.
    problem : str
        What it raised; empty if it did not.
    """
    try:
        return function(), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it may exit, too
        return None, raised(error)
