"""Errors of checks: where they occurred, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...core.extend import is_transformed, registry


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Raise errors as an AssertionError that says where they occurred."""
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        raise AssertionError(f"{where}: {kind}{error}{_advice(error)}") from error


def _advice(error: Exception) -> str:
    """Return what to write instead, if a rule used one of our arrays as a NumPy array."""
    attribute = getattr(error, "name", None) if isinstance(error, AttributeError) else None
    if attribute is not None and is_transformed(error.obj):  # type: ignore[attr-defined]
        function = {"astype": "cast", "T": "transpose", "dot": "matmul"}.get(attribute, attribute)
        known = function in registry().ops
        use = f"F.{function}" if known else "functions F.<op>"
        like = " (or F.cast_like)" if function == "cast" else ""
    elif isinstance(error, TypeError) and "__array_ufunc__=None" in str(error):
        use, like = "functions F.<op>", ""
    else:
        return ""
    return (
        "; gradient rules run on every type of array, including those of a trace or a batch: write "
        f"them with operators and {use}{like}, from gradtape.plugin"
    )
