"""Forks in the place of new interpreters, which take most of the time of what they do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def forks() -> Iterator[None]:
    """Read files of Keras, and verify files, in forks of this process.

    For tests that are about files, not about what another process is like.
    """
    from fuzz.files.judging import without_a_new_interpreter

    if not hasattr(os, "fork") or "jax" in sys.modules:  # whose threads a fork would leave behind
        yield
        return
    with without_a_new_interpreter():
        yield
