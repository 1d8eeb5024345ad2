"""NumPy's warnings about numbers, shown at the user's line instead of at one of gradtape's.

"invalid value encountered in log" names the line that calls NumPy, which is a kernel. Python asks
its filters before it shows a warning. The last of them, which counts only where no other applies,
warns again at the line of the user's code that ran the op.

Filters are of the whole process, and other libraries copy them: scikit-learn sends them to its
worker processes, and in the same process makes filters of their ``pattern``. The patterns here
therefore fit NumPy's texts in kernels only, and a copy of them fits nothing. Where a program drops
the filter (``warnings.resetwarnings()``, or an import of gradtape inside ``catch_warnings``),
warnings name the kernels.
"""

from __future__ import annotations

import re
import threading
import warnings
from typing import Any

from .frames import is_kernels_module, package_of, users_frame, warn_user

_NUMPYS = re.compile(r"(divide by zero|overflow|underflow|invalid value) encountered in ")


class _Pattern:
    """What a filter has instead of a regular expression."""

    #: What those get who copy a filter by its pattern, such as scikit-learn: it fits nothing.
    pattern, flags = r"(?!)", 0

    def __reduce__(self) -> Any:
        return re.compile, (self.pattern,)


class _Text(_Pattern, threading.local):
    """A filter's pattern for texts: it fits those of NumPy's kernels, and remembers the last."""

    text = ""

    def match(self, text: str) -> bool:
        self.text = text if _NUMPYS.match(text) else ""
        return bool(self.text)


class _OfKernels(_Pattern):
    """A filter's pattern for modules: it fits gradtape's and plugins', and warns above them."""

    def __init__(self, seen: _Text) -> None:
        self._seen = seen

    def match(self, module: str) -> bool:
        # Python asks all patterns of a filter, whether or not others fit
        if not self._seen.text or not is_kernels_module(module):
            return False
        frame = users_frame()
        if frame is None or package_of(frame) == "threading":  # a thread of gradtape's own
            return False
        if module == frame.f_globals.get("__name__"):  # a plugin is the program
            return False
        warn_user(self._seen.text, RuntimeWarning)
        return True


def show_at_users_lines() -> None:
    """Add the filter, once per process.

    Python is not told that its filters have changed (:func:`warnings.filterwarnings` would): no
    kernel has warned yet, so there is nothing to warn of again.
    """
    seen = _Text()
    shown: Any = ("ignore", seen, RuntimeWarning, _OfKernels(seen), 0)
    filters: Any = warnings.filters
    if not any(type(known[3]) is _OfKernels for known in filters):
        filters.append(shown)
