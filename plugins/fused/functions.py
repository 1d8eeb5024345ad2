"""Single-precision functions, as NumPy computes them on processors with fused multiply-add.

They consist of arithmetic only, so that a loop computes several elements at once, with NumPy's own
range reduction and polynomials. Where NumPy uses another method (``exp`` above 88, ``sin`` above
71476, ``log`` of anything but a positive normal number), the group is left to NumPy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

#: A function that adds an instruction and returns the name of its value.
Add: TypeAlias = Callable[[str], str]

#: Added to a small number to round it, which leaves the integer in the lowest bits.
_ROUNDING = float.fromhex("0x1.8p23")
_ROUNDING_BITS = 0x4B400000
_COS = [float.fromhex(x) for x in "0x1.98e616p-16 -0x1.6c06dcp-10 0x1.55553cp-5 -0x1p-1 1".split()]
_SIN = [
    float.fromhex(x)
    for x in "0x1.7d3bbcp-19 -0x1.a06bbap-13 0x1.11119ap-7 -0x1.555556p-3 0".split()
]
_HALF_PI = (-1.5707962513e00, -7.5497894159e-08, -5.3903029534e-15)
_LN2 = (-6.93145752e-1, -1.42860677e-6)
_EXP = (
    [5.0827627625e-4, 6.757896990527e-3, 0.05114512081637, 0.24736154348955, 0.72576646132331, 1.0],
    [0.02159509375685, -0.27423353904115, 1.0],
)
_LOG = (
    [0.02589979117908, 0.38088377413884, 1.48000063357651, 2.11267754307305, 1.0, 0.0],
    [0.005875095403125, 0.15464763749840, 0.98649429585184, 2.4530060717847, 2.6126775430731, 1.0],
)
_LEAST, _MOST = -103.97208404541015625, 88.72283935546875


def constant(value: float) -> str:
    """Return a number of single or double precision in the syntax of instructions."""
    return f"0x{struct.pack('>d', value).hex()}"


def _single(value: float) -> str:
    return constant(struct.unpack("f", struct.pack("f", value))[0])


def _fused(add: Add, x: str, y: str, z: str) -> str:
    return add(f"call float @llvm.fma.f32(float {x}, float {y}, float {z})")


def _polynomial(add: Add, x: str, factors: Sequence[float]) -> str:
    value = _single(factors[0])
    for factor in factors[1:]:
        value = _fused(add, value, x, _single(factor))
    return value


def _reduced(add: Add, x: str, scale: float, parts: Sequence[float]) -> tuple[str, str]:
    """Return the remainder of a division, and bits whose lowest are those of the quotient."""
    quotient = add(f"fmul float {x}, {_single(scale)}")
    shifted = add(f"fadd float {quotient}, {_single(_ROUNDING)}")
    quotient = add(f"fsub float {shifted}, {_single(_ROUNDING)}")
    for part in parts:
        x = _fused(add, quotient, _single(part), x)
    return x, add(f"bitcast float {shifted} to i32")


def _circle(quarter: int) -> Callable[[Add, str], tuple[str, str]]:
    def function(add: Add, x: str) -> tuple[str, str]:
        rest, quadrant = _reduced(add, x, float.fromhex("0x1.45f306p-1"), _HALF_PI)
        quadrant = add(f"add i32 {quadrant}, {quarter}")
        square = add(f"fmul float {rest}, {rest}")
        cos = _polynomial(add, square, _COS)
        sin = _fused(add, _polynomial(add, square, _SIN), rest, rest)
        odd = add(f"icmp ne i32 {add(f'and i32 {quadrant}, 1')}, 0")
        value = add(f"bitcast float {add(f'select i1 {odd}, float {cos}, float {sin}')} to i32")
        sign = add(f"shl i32 {add(f'and i32 {quadrant}, 2')}, 30")
        value = add(f"bitcast i32 {add(f'xor i32 {value}, {sign}')} to float")
        size = add(f"call float @llvm.fabs.f32(float {x})")
        return value, add(f"fcmp ogt float {size}, {_single(71476.0625)}")

    return function


def _exp(add: Add, x: str) -> tuple[str, str]:
    small = add(f"fcmp ole float {x}, {_single(_LEAST)}")
    within = add(f"select i1 {small}, float {_single(_LEAST)}, float {x}")
    rest, bits = _reduced(add, within, 1.442695040888963407, _LN2)
    above, below = (_polynomial(add, rest, factors) for factors in _EXP)
    value = add(f"fdiv float {above}, {below}")
    exponent = add(f"sub i32 {bits}, {_ROUNDING_BITS}")
    half = add(f"ashr i32 {exponent}, 1")
    for part in (half, add(f"sub i32 {exponent}, {half}")):  # in one go it might not be normal
        power = add(f"shl i32 {add(f'add i32 {part}, 127')}, 23")
        value = add(f"fmul float {value}, {add(f'bitcast i32 {power} to float')}")
    value = add(f"select i1 {small}, float 0.0, float {value}")
    return value, add(f"fcmp oge float {x}, {_single(_MOST)}")


def _log(add: Add, x: str) -> tuple[str, str]:
    bits = add(f"bitcast float {x} to i32")
    exponent = add(f"sub i32 {add(f'ashr i32 {bits}, 23')}, 127")
    mantissa = add(f"or i32 {add(f'and i32 {bits}, {0x7FFFFF}')}, {0x3F800000}")
    mantissa = add(f"bitcast i32 {mantissa} to float")
    large = add(f"fcmp ogt float {mantissa}, {_single(2**0.5)}")
    half = add(f"fmul float {mantissa}, {_single(0.5)}")
    mantissa = add(f"select i1 {large}, float {half}, float {mantissa}")
    exponent = add(f"add i32 {exponent}, {add(f'zext i1 {large} to i32')}")
    exponent = add(f"sitofp i32 {exponent} to float")
    mantissa = add(f"fsub float {mantissa}, {_single(1.0)}")
    above, below = (_polynomial(add, mantissa, factors) for factors in _LOG)
    value = add(f"fdiv float {above}, {below}")
    value = _fused(add, exponent, _single(0.6931471805599453), value)
    finite = add(f"fcmp olt float {x}, {_single(float('inf'))}")
    value = add(f"select i1 {finite}, float {value}, float {x}")
    return value, add(f"fcmp olt float {x}, {_single(2.0**-126)}")


#: Functions that add instructions, and return the value and whether it is left to NumPy.
FUNCTIONS: dict[str, Callable[[Add, str], tuple[str, str]]] = {
    "cos": _circle(1),
    "exp": _exp,
    "log": _log,
    "sin": _circle(0),
}
