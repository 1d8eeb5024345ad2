"""Loops over windows in kernels that rules write; ``k0``, ``k1``, ... are an element's indices."""

from __future__ import annotations

from math import prod

from ....ops.network.windows import Windows


def places_in_window(where: Windows) -> tuple[list[str], list[str]]:
    """Return the loops over a window's elements ``p1``, ``p2``, ... without the padding.

    The opening lines define the indices in the image, ``i1``, ``i2``, ...; the others close them.

    Parameters
    ----------
    where
        The windows, whose numbers along the axes are ``k1``, ``k2``, ...
    """
    opening = []
    for axis, size in enumerate(where.sizes, 1):
        opening += [
            f"for (I p{axis} = 0; p{axis} < {where.kernel[axis - 1]}; p{axis}++) {{",
            f"I i{axis} = {_index(where, axis)};",
            f"if (i{axis} < 0 || i{axis} >= {size}) continue;",
        ]
    return opening, ["}"] * len(where.sizes)


def place_by_number(where: Windows, number: str, letter: str = "k") -> list[str]:
    """Return lines that define ``p1``, ..., ``i1``, ..., and ``inside``, whether it is an element.

    Parameters
    ----------
    where
        The windows.
    number
        The place's number within its window.
    letter
        What the names of the window's numbers begin with.
    """
    lines, inside = [], []
    for axis, size in enumerate(where.sizes, 1):
        rest = prod(where.kernel[axis:])
        lines.append(f"I p{axis} = {number} / {rest} % {where.kernel[axis - 1]};")
        lines.append(f"I i{axis} = {_index(where, axis, letter)};")
        inside.append(f"i{axis} >= 0 && i{axis} < {size}")
    return [*lines, f"bool inside = {' && '.join(inside)};"]


def windows_of_place(where: Windows) -> tuple[list[str], list[str]]:
    """Return the loops over the windows ``o1``, ``o2``, ... that contain an element of the image.

    Its place in the window is ``p1``, ``p2``, ...; the sums are in the portable kernels' order.

    Parameters
    ----------
    where
        The windows; the element's indices in the image are ``k1``, ``k2``, ...
    """
    opening = []
    for axis, count in enumerate(where.out, 1):
        stride, dilation = where.strides[axis - 1], where.dilations[axis - 1]
        before = where.pads[axis - 1][0]
        opening += [
            f"for (I p{axis} = 0; p{axis} < {where.kernel[axis - 1]}; p{axis}++) {{",
            f"I o{axis} = k{axis} + {before} - p{axis} * {dilation};",
            f"if (o{axis} < 0 || o{axis} % {stride}) continue;",
            f"o{axis} /= {stride};",
            f"if (o{axis} >= {count}) continue;",
        ]
    return opening, ["}"] * len(where.out)


def names(letter: str, where: Windows) -> list[str]:
    """Return a letter's names along the spatial axes."""
    return [f"{letter}{axis}" for axis in range(1, len(where.sizes) + 1)]


def _index(where: Windows, axis: int, letter: str = "k") -> str:
    stride, dilation = where.strides[axis - 1], where.dilations[axis - 1]
    before = where.pads[axis - 1][0]
    return f"{letter}{axis} * {stride} + p{axis} * {dilation} - {before}"
