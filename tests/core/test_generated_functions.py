"""Functions that gradtape writes as Python source: tracebacks show their lines."""

from __future__ import annotations

import gc
import linecache
import traceback

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
