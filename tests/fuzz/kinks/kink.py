"""A row of the table of kinks, infinities and zeros, without gradtape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = [
    "COMPOSED",
    "CONSTANT",
    "FAR",
    "INF",
    "JUMP",
    "MIDDLE",
    "NAN",
    "NEG",
    "PARTS",
    "ROOT",
    "SIDES",
    "TO_NAN",
    "Interval",
    "Kink",
    "of_nn",
    "same",
]

INF = float("inf")
NEG, NAN = -INF, float("nan")


@dataclass(frozen=True)
class Interval:
    """Any slope from ``low`` to ``high`` is a subgradient, and each of them is right."""

    low: float
    high: float


@dataclass(frozen=True)
class Kink:
    """A call at a point.

    Attributes
    ----------
    call, jax, tensorflow
        The call as text, with argument ``x``, in each library; ``""`` if it has none.
    at
        The point, a number or nested lists.
    first, second
        The right slope, and the slope of the sum of slopes: numbers, an :class:`Interval` of
        subgradients, or None where there is none.
    reason
        Why that is right, and why gradtape's differs on purpose if it does.
    on_purpose
        Whether gradtape's differs on purpose.
    """

    call: str
    jax: str
    tensorflow: str
    at: Any
    first: Any
    second: Any
    reason: str
    on_purpose: bool = False


def same(
    name: str,
    at: Any,
    first: Any,
    second: Any,
    reason: str,
    tf: str = "tf.math",
    on_purpose: bool = False,
) -> Kink:
    other = f"{tf}.{name}(x)" if tf else ""
    return Kink(f"gt.{name}(x)", f"jnp.{name}(x)", other, at, first, second, reason, on_purpose)


def of_nn(name: str, at: Any, first: Any, second: Any, reason: str, other: str = "") -> Kink:
    tf = f"tf.nn.{name}(x)" if other != "-" else ""
    jax = "" if name == "soft_shrink" else f"jax.nn.{name.replace('softsign', 'soft_sign')}(x)"
    return Kink(f"gt.nn.{name}(x)", jax, tf, at, first, second, reason)


MIDDLE = "the one-sided slopes are -1 and 1; the middle one is taken"
SIDES = "any slope between the one-sided slopes"
COMPOSED = (
    "a rule sees one op at a time: each factor has slope 0 at its kink, and so has the slope of "
    "their product. Write x * x or gt.square(x)"
)
CONSTANT = "constant in the limit"
PARTS = (
    "constant in the limit; only the first order is handled at infinities: the second is 0 · ∞ "
    "of parts of the rule"
)
ROOT = "a vertical slope"

TO_NAN = "the gradient goes to the nan"
FAR = "inf / inf of parts of the rule; the value is infinite too, which shows it"
JUMP = "a jump: 0, as everywhere else"
