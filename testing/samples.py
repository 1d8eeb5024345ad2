"""``Sample``: arguments of an op, and which of its checks to skip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.extend import SCALARS, describe

#: The checks, in order.
CHECKS = (
    "gradients",
    "second order",
    "linear",
    "forward",
    "traced",
    "known sizes",
    "unknown sizes",
    "unknown rank",
    "batched",
    "traced batch",
    "saved",
    "float32",
    "float16",
    "strided",
    "empty",
    "backend",
)


class Sample:
    """Inputs and parameters of a call of an op.

    Parameters
    ----------
    inputs
        Arrays, nested lists, or Python numbers (which stay numbers with a weak dtype). Floating and
        complex inputs are differentiated; they should be ``float64`` and ``complex128``, and 0.01
        or more away from kinks.
    params
        The op's parameters.

    Examples
    --------
    >>> gt.testing.Sample(np.ones((2, 3)), axis=0)
    Sample(float64[2, 3], axis=0)
    """

    _gradtape_internal = "exempt feed selects view"

    __slots__ = ("exempt", "feed", "inputs", "params", "selects", "view")

    def __init__(self, *inputs: Any, **params: Any) -> None:
        self.inputs = tuple(x if type(x) in SCALARS else np.asarray(x) for x in inputs)
        self.params = params
        self.exempt: dict[str, str] = {}
        self.selects = False
        self.feed: Callable[..., Any] = lambda *inputs: inputs
        self.view: Callable[..., Any] = lambda *results: results

    def without(self, *checks: str, reason: str) -> Sample:
        """Skip checks (see ``CHECKS``) for a reason, and return the sample.

        Parameters
        ----------
        checks
            The names of the checks.
        reason
            Why they are skipped; the report of :func:`check_op` shows it.

        Returns
        -------
        Sample
            The sample itself.

        Raises
        ------
        ValueError
            If there is no such check.

        Examples
        --------
        >>> sample = gt.testing.Sample(np.ones(2)).without("float16", reason="too coarse")
        """
        for check in checks:
            if check not in CHECKS:
                raise ValueError(
                    f"Sample: there is no check {check!r}; the checks are {', '.join(CHECKS)}"
                )
        self.exempt.update(dict.fromkeys(checks, reason))
        return self

    def with_backend_selected(self) -> Sample:
        """Make :func:`check_backend` select the backend for the call; return the sample.

        For functions that create tensors, or draw numbers, on the selected backend.

        Returns
        -------
        Sample
            The sample itself.

        Examples
        --------
        >>> sample = gt.testing.Sample(np.ones(2), rate=0.5).with_backend_selected()
        """
        self.selects = True
        return self

    def fed_through(self, feed: Callable[..., Any]) -> Sample:
        """Make the op receive ``feed(*inputs)``, one value or a tuple; return the sample.

        For inputs with a structure that differences would break, such as symmetric matrices.

        Parameters
        ----------
        feed
            A function of the inputs, as tensors.

        Returns
        -------
        Sample
            The sample itself.

        Examples
        --------
        >>> sample = gt.testing.Sample(np.eye(2)).fed_through(lambda x: x + x.mT)
        """
        self.feed = feed
        return self

    def seen_through(self, view: Callable[..., Any]) -> Sample:
        """Make the checks use ``view(*results)`` instead of the results; return the sample.

        For results that are not unique, such as eigenvectors, whose sign is arbitrary.

        Parameters
        ----------
        view
            A function of the results, as tensors.

        Returns
        -------
        Sample
            The sample itself.

        Examples
        --------
        >>> sample = gt.testing.Sample(np.eye(2)).seen_through(lambda w, v: (w, gt.abs(v)))
        """
        self.view = view
        return self

    def __repr__(self) -> str:
        given = [repr(x) if type(x) in SCALARS else describe(x.shape, x.dtype) for x in self.inputs]
        return f"Sample({', '.join([*given, *(f'{k}={v!r}' for k, v in self.params.items())])})"
