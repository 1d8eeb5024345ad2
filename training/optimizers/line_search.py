"""A line search for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Point", "strong_wolfe"]

#: At a kink, slopes flip without becoming flat. After so many divisions of a bracket, a lower point
#: where the loss rises again is enough (the weak Wolfe conditions).
_KINKED = 3


class Point(NamedTuple):
    """A point along a direction."""

    t: float
    loss: float
    gradient: Any
    slope: float  # of the loss, along the direction


def strong_wolfe(
    at: Callable[[float], Point],
    start: Point,
    t: float,
    most: int,
    narrow: float,
    enough: float = 1e-4,
    flat: float = 0.9,
) -> tuple[Point, int]:
    """Return a point that satisfies the strong Wolfe conditions, and the number of evaluations.

    The search ends after ``most`` further points, or when the bracket is narrower than ``narrow``.
    If it has not found such a point by then, it returns the lowest one.

    Parameters
    ----------
    at
        Evaluates a point.
    start
        The point at 0, where the slope is negative.
    t
        The first point to try.
    most
        The number of points to evaluate besides the first.
    narrow
        The width at which a bracket is no longer divided.
    enough, flat
        The required decrease of the loss, as a fraction of what the slope at ``start`` predicts,
        and the largest allowed slope, as a fraction of that slope.
    """

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + enough * point.t * start.slope

    def flat_enough(point: Point) -> bool:
        return abs(point.slope) <= -flat * start.slope

    before, new = start, at(t)
    for done in range(most):
        if too_high(new) or (done > 1 and new.loss >= before.loss):
            break
        if flat_enough(new):
            return new, 1 + done
        if new.slope >= 0.0:
            break
        bounds = new.t + 0.01 * (new.t - before.t), new.t * 10.0
        before, new = new, at(_lowest_of_cubic(before, new, *bounds))
    else:
        return (start if start.loss <= new.loss else new), 1 + most
    low, high = (before, new) if before.loss <= new.loss else (new, before)
    stuck = False
    kinked = done + _KINKED
    while done < most and abs(high.t - low.t) >= narrow:
        left, right = sorted((low, high), key=lambda point: point.t)
        t, stuck = _within(_lowest_of_cubic(left, right, left.t, right.t), left.t, right.t, stuck)
        new = at(t)
        done += 1
        if too_high(new) or new.loss >= low.loss:
            low, high = (low, new) if low.loss <= new.loss else (new, low)
            continue
        if flat_enough(new) or (done >= kinked and new.slope > 0.0):
            return new, 1 + done
        high = low if new.slope * (high.t - low.t) >= 0.0 else high
        low = new
    return low, 1 + done


def _within(t: float, left: float, right: float, stuck: bool) -> tuple[float, bool]:
    """Return the next point to try in a bracket, and whether it is near an end."""
    edge = 0.1 * (right - left)
    if min(right - t, t - left) >= edge:
        return t, False
    if stuck or t >= right or t <= left:
        return (right - edge if abs(t - right) < abs(t - left) else left + edge), False
    return t, True


def _lowest_of_cubic(a: Point, b: Point, least: float, most: float) -> float:
    """Return the minimum, within bounds, of the cubic through two points with their slopes.

    If there is none, as along a line, return the middle.
    """
    if a.t == b.t:
        return (least + most) / 2.0
    one = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.t - b.t)
    square = one * one - a.slope * b.slope
    if not 0.0 <= square < math.inf:
        return (least + most) / 2.0
    left, right = (a, b) if a.t <= b.t else (b, a)
    root = math.sqrt(square)
    bend = right.slope - left.slope + 2.0 * root
    if not bend:
        return (least + most) / 2.0
    part = (right.slope + root - one) / bend
    return min(max(right.t - (right.t - left.t) * part, least), most)
