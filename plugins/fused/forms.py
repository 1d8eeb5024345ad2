"""Forms: the computations of steps in a loop, as instructions of LLVM.

Forms contain only operations with a single correct rounding, so that results are NumPy's, bit for
bit: arithmetic, roots, comparisons, conversions, and single-precision functions where they equal
NumPy's. Other functions have no form: a group calls NumPy's own (``inner_loops``).

Single-precision functions are computed as NumPy does on processors with fused multiply-add. They
consist of arithmetic only, so that a loop computes several elements at once, with NumPy's own range
reduction and polynomials. Where NumPy uses another method (``exp`` above 88, ``sin`` above 71476,
``log`` of anything but a positive normal number), the group is left to NumPy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...core.extend import SCALARS, Symbol, registry
from ..planned import PlanStep

# -- functions in single precision -----------------------------------------------------------------


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


def _reduced(add: Add, x: str, scale: float, parts: Sequence[float], once: bool) -> tuple[str, str]:
    """Return the remainder of a division, and bits whose lowest are those of the quotient.

    The quotient is rounded ``once``, to an integer, or to single precision before.
    """
    if once:
        shifted = _fused(add, x, _single(scale), _single(_ROUNDING))
    else:
        quotient = add(f"fmul float {x}, {_single(scale)}")
        shifted = add(f"fadd float {quotient}, {_single(_ROUNDING)}")
    quotient = add(f"fsub float {shifted}, {_single(_ROUNDING)}")
    for part in parts:
        x = _fused(add, quotient, _single(part), x)
    return x, add(f"bitcast float {shifted} to i32")


def _circle(quarter: int) -> Callable[[Add, str], tuple[str, str]]:
    def function(add: Add, x: str) -> tuple[str, str]:
        rest, quadrant = _reduced(add, x, float.fromhex("0x1.45f306p-1"), _HALF_PI, True)
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
    rest, bits = _reduced(add, within, 1.442695040888963407, _LN2, False)
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


# -- forms -----------------------------------------------------------------------------------------


#: Instructions, the last of which gives the result, or a function that adds them; and the dtypes
#: to which operands are converted.
Form: TypeAlias = tuple[Any, list[Any]]

# {0} and so on are the operands, then the results of the instructions before
_ALIKE = {"copyto": (), "positive": ()}
_OF_FLOATS = {
    **_ALIKE,
    "add": ("fadd {t} {0}, {1}",),
    "divide": ("fdiv {t} {0}, {1}",),
    "equal": ("fcmp oeq {t} {0}, {1}",),
    "greater": ("fcmp ogt {t} {0}, {1}",),
    "greater_equal": ("fcmp oge {t} {0}, {1}",),
    "isnan": ("fcmp uno {t} {0}, {0}",),
    "less": ("fcmp olt {t} {0}, {1}",),
    "less_equal": ("fcmp ole {t} {0}, {1}",),
    "maximum": (
        "fcmp ogt {t} {0}, {1}",
        "fcmp uno {t} {0}, {0}",
        "or i1 {2}, {3}",
        "select i1 {4}, {t} {0}, {t} {1}",
    ),
    "minimum": (
        "fcmp olt {t} {0}, {1}",
        "fcmp uno {t} {0}, {0}",
        "or i1 {2}, {3}",
        "select i1 {4}, {t} {0}, {t} {1}",
    ),
    "multiply": ("fmul {t} {0}, {1}",),
    "negative": ("fneg {t} {0}",),
    "not_equal": ("fcmp une {t} {0}, {1}",),
    "reciprocal": ("fdiv {t} 1.0, {0}",),
    "square": ("fmul {t} {0}, {0}",),
    "subtract": ("fsub {t} {0}, {1}",),
    **{
        op: (f"call {{t}} @llvm.{name}.{{s}}({{t}} {{0}})",)
        for op, name in (
            *(("absolute", "fabs"), ("fabs", "fabs"), ("sqrt", "sqrt"), ("rint", "rint")),
            *(("ceil", "ceil"), ("floor", "floor"), ("trunc", "trunc")),
        )
    },
}
_OF_INTEGERS = {
    **_ALIKE,
    **dict.fromkeys(("ceil", "floor", "rint", "trunc"), ()),
    "absolute": (
        "icmp slt {t} {0}, 0",
        "sub {t} 0, {0}",
        "select i1 {1}, {t} {2}, {t} {0}",
    ),
    "add": ("add {t} {0}, {1}",),
    "equal": ("icmp eq {t} {0}, {1}",),
    "greater": ("icmp sgt {t} {0}, {1}",),
    "greater_equal": ("icmp sge {t} {0}, {1}",),
    "less": ("icmp slt {t} {0}, {1}",),
    "less_equal": ("icmp sle {t} {0}, {1}",),
    "maximum": ("icmp sgt {t} {0}, {1}", "select i1 {2}, {t} {0}, {t} {1}"),
    "minimum": ("icmp slt {t} {0}, {1}", "select i1 {2}, {t} {0}, {t} {1}"),
    "multiply": ("mul {t} {0}, {1}",),
    "negative": ("sub {t} 0, {0}",),
    "not_equal": ("icmp ne {t} {0}, {1}",),
    "square": ("mul {t} {0}, {0}",),
    "subtract": ("sub {t} {0}, {1}",),
}
_AND, _OR, _XOR = ("and i1 {0}, {1}",), ("or i1 {0}, {1}",), ("xor i1 {0}, {1}",)
_OF_TRUTHS = {
    **_ALIKE,
    "bitwise_and": _AND,
    "bitwise_or": _OR,
    "bitwise_xor": _XOR,
    "equal": ("icmp eq i1 {0}, {1}",),
    "logical_and": _AND,
    "logical_not": ("xor i1 {0}, true",),
    "logical_or": _OR,
    "logical_xor": _XOR,
    "not_equal": _XOR,
}
_BY_KIND = {"f": _OF_FLOATS, "i": _OF_INTEGERS, "b": _OF_TRUTHS}
#: The LLVM types of dtypes; that of booleans is for values, which take a byte in memory.
TYPES = {"bool": "i1", "int32": "i32", "int64": "i64", "float32": "float", "float64": "double"}


def _choice(step: PlanStep) -> Form:
    out = step.out.dtype
    return ("select i1 {0}, {t} {1}, {t} {2}",), [np.dtype(bool), out, out]


def _cast(step: PlanStep) -> Form:
    return (), [step.out.dtype]


#: The forms of steps that are no ufuncs, by op name, which a plugin provides: each is a function of
#: the step, and returns its :data:`Form` or None.
FORMS: dict[str, Callable[[PlanStep], Form | None]] = {"where": _choice, "cast": _cast}


def form_of(step: PlanStep, exact: Container[str]) -> Form | None:
    """Return the form of an elementwise step; None if it has none.

    Parameters
    ----------
    step
        The step.
    exact
        Which of :data:`FUNCTIONS` equal NumPy's here, bit for bit.
    """
    out = step.out.dtype
    form: Any
    lowering = registry().lowering(step.op, "llvm")
    special = None if lowering is None else lowering(step)
    if special is not None:
        form, of = special
    elif isinstance(step.run, np.ufunc):
        given = [x.dtype if type(x) is Symbol else type(x) for x in step.inputs]
        *of, result = step.run.resolve_dtypes((*given, None))
        if result != out or len(set(of)) != 1:
            return None
        form = _BY_KIND.get(of[0].kind, {}).get(step.op)
        if step.op in exact and of[0].char == "f":
            form = FUNCTIONS[step.op]
    elif step.op == "outer_products":
        form, of = _outer_product(TYPES[out.name]), [out, out]
    else:
        return None
    if form is None or not all(map(convertible, step.inputs, of)):
        return None
    return form, of


def _outer_product(kind: str) -> Callable[[Add, str, str], tuple[str, str]]:
    """Return a form for a product of finite factors, as a sum that starts with +0."""
    size, infinite = f"@llvm.fabs.{'f32' if kind == 'float' else 'f64'}", constant(float("inf"))

    def form(add: Add, x: str, y: str) -> tuple[str, str]:
        value = add(f"fadd {kind} 0.0, {add(f'fmul {kind} {x}, {y}')}")
        sizes = [add(f"call {kind} {size}({kind} {part})") for part in (x, y)]
        left = [add(f"fcmp uge {kind} {part}, {infinite}") for part in sizes]
        return value, add(f"or i1 {left[0]}, {left[1]}")

    return form


def convertible(x: Any, target: Any) -> bool:
    if type(x) is Symbol:
        return conversion(x.dtype, target) is not None
    try:
        with np.errstate(over="raise"):
            return type(x) in SCALARS and np.dtype(target).type(x) is not None
    except (FloatingPointError, OverflowError, TypeError):
        return False


def conversion(source: Any, target: Any) -> str | None:
    """Return the instruction that converts a value; "" for none, None if it may be inexact."""
    if source == target:
        return ""
    kinds = np.dtype(source).kind + np.dtype(target).kind
    wider = np.dtype(source).itemsize < np.dtype(target).itemsize
    return {
        "ff": "fpext {a} {0} to {b}" if wider else "fptrunc {a} {0} to {b}",
        "if": "sitofp {a} {0} to {b}",
        "bf": "uitofp {a} {0} to {b}",
        "bi": "zext {a} {0} to {b}",
        "ii": "sext {a} {0} to {b}" if wider else "trunc {a} {0} to {b}",
        "ib": "icmp ne {a} {0}, 0",
    }.get(kinds)
