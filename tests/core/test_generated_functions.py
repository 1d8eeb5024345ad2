"""Functions that gradtape writes as Python source: tracebacks show their lines."""

from __future__ import annotations

import gc
import linecache
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

from gradtape.core.extend import function_from

SOURCE = "def divide(x):\n    return 1 / x"


def test_a_traceback_shows_the_line_that_failed() -> None:
    divide = function_from(SOURCE, "divide", "<a quotient>")
    assert divide(4) == 0.25
    with pytest.raises(ZeroDivisionError) as caught:
        divide(0)
    assert "return 1 / x" in "".join(traceback.format_exception(caught.value))


def test_functions_of_one_name_keep_their_own_lines_while_they_exist() -> None:
    first = function_from(SOURCE, "divide", "<a quotient>")
    second = function_from(f"\n{SOURCE}", "divide", "<a quotient>")
    files = [first.__code__.co_filename, second.__code__.co_filename]
    assert len(set(files)) == 2
    assert [linecache.getline(file, 2).strip()[:3] for file in files] == ["ret", "def"]
    del first, second
    gc.collect()
    function_from(SOURCE, "divide", "<another quotient>")  # they leave when the next one is made
    assert [file for file in files if file in linecache.cache] == []


def test_threads_make_functions_while_others_end() -> None:
    def make(_: int) -> int:
        return sum(function_from(SOURCE, "divide", "<a quotient>")(1.0) for _ in range(300))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(make, range(8))) == [300] * 8
    finally:
        sys.setswitchinterval(interval)
