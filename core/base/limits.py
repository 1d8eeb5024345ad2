"""Derivatives that are limits: where an op's rule has none, those of points nearby tell it.

At equal eigenvalues, for example, the derivative of a function of the eigenvectors follows from no
upstream gradient: it is the limit of the derivatives at separate eigenvalues. A kernel that meets
such a point says so, and the derivative is computed again at points a small step away, where the
same kernel returns the outputs of that point. See ``core.transforms.limits``.
"""

from __future__ import annotations

from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Any

from ..errors import BrokenPathWarning, GradientError
from .context import strictness
from .unknown import warn_user

if TYPE_CHECKING:
    from ..tensors.variable import Variable


class Derivation:
    """A derivative that is being computed, at a point or at a step away from it.

    Parameters
    ----------
    step
        None at the point itself. Otherwise the signed, relative length of the step away: a kernel
        that met such a point returns outputs that depend smoothly on it.
    turned
        Whether kernels make other arbitrary choices at the point than usual: the limit is the same
        if there is one.

    Attributes
    ----------
    eps
        The rounding error of the dtypes in which kernels met such a point; 0.0 if none did.
    size
        The smallest size of their arguments there: functions change over such distances.
    met
        A description of the point, for messages.
    changed
        The variables that were assigned, by id, each with its array before.
    """

    __slots__ = ("changed", "eps", "met", "size", "step", "turned")

    def __init__(self, step: float | None = None, turned: bool = False) -> None:
        self.step, self.turned = step, turned
        self.eps, self.size = 0.0, inf
        self.met = ""
        self.changed: dict[int, tuple[Variable, Any]] = {}

    def meet(self, eps: float, size: float, what: str) -> None:
        """Note that the derivative at this point is a limit, and why."""
        self.eps, self.size = max(self.eps, eps), min(self.size, size)
        self.met = self.met or what

    def join(self, other: Derivation) -> None:
        """Note what another derivation did, which was a part of this one."""
        self.meet(other.eps, other.size, other.met)
        self.changed = other.changed | self.changed


#: The derivative that running code computes, if it can be computed again a step away.
deriving: ContextVar[Derivation | None] = ContextVar("gradtape_deriving", default=None)


def changing(variable: Variable, before: Any) -> None:
    """Note that a variable is about to be assigned, with its current array."""
    derivation = deriving.get()
    if derivation is not None:
        derivation.changed.setdefault(variable.id, (variable, before))


def tell_lacking(why: str, strict: bool = False) -> None:
    """Warn that a derivative lacks terms, or raise if that is an error."""
    if strict or strictness.get():
        raise GradientError(why)
    warn_user(
        f"{why}. The derivative lacks terms; strict=True makes this an error", BrokenPathWarning
    )
