"""Formulas: elementwise steps as expressions of CUDA C, equal to those of CuPy's own ufuncs.

16-bit numbers are computed in ``float`` and rounded after each step, as CuPy does.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, isnan
from typing import Any

import numpy as np

from ....core.extend import SCALARS, Symbol, registry
from ...planned import PlanStep

#: By a dtype's name, the C type of its numbers in memory.
_IN_MEMORY = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "unsigned short",
    "bfloat16": "unsigned short",
    "float32": "float",
    "float64": "double",
}
#: The 16-bit types, and the functions that unpack and pack them.
_SHORT = {"float16": ("from_half", "to_half"), "bfloat16": ("from_bfloat", "to_bfloat")}

#: Conversions of 16-bit numbers, for kernels that have some.
HALF = """\
static __device__ float from_half(unsigned short bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
static __device__ unsigned short to_half(float x) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
"""
BFLOAT = """\
static __device__ float from_bfloat(unsigned short bits) {
    return __int_as_float((int)((unsigned int)bits << 16));
}
static __device__ unsigned short to_bfloat(float x) {
    unsigned int bits = (unsigned int)__float_as_int(x);
    if (x != x) return (unsigned short)((bits >> 16) | 0x40);
    return (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
"""

_COMPARED = {
    "equal": "{0} == {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "logical_and": "{0} != 0 && {1} != 0",
    "logical_not": "!({0} != 0)",
    "logical_or": "{0} != 0 || {1} != 0",
    "logical_xor": "({0} != 0) != ({1} != 0)",
    "not_equal": "{0} != {1}",
}
_OF_NUMBERS = {
    **_COMPARED,
    "add": "{0} + {1}",
    "conjugate": "{0}",
    "multiply": "{0} * {1}",
    "negative": "-{0}",
    "positive": "{0}",
    "square": "{0} * {0}",
    "subtract": "{0} - {1}",
}
#: Functions of floating-point numbers, by their name in CUDA.
_FUNCTIONS = {
    "absolute": "fabs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "fabs": "fabs",
    **{
        name: name
        for name in (
            "cbrt ceil cos cosh exp expm1 floor isfinite isinf log log10 log1p log2 rint signbit "
            "sin sinh sqrt tan tanh trunc"
        ).split()
    },
}
_OF_REALS = {
    **_OF_NUMBERS,
    **{name: f"{function}({{0}})" for name, function in _FUNCTIONS.items()},
    "arctan2": "atan2({0}, {1})",
    "copysign": "copysign({0}, {1})",
    "divide": "{0} / {1}",
    "exp2": "pow(({T})2, {0})",
    "fmax": "fmax({0}, {1})",
    "fmin": "fmin({0}, {1})",
    "heaviside": "({0} != {0} ? {0} : {0} == 0 ? {1} : ({T})({0} > 0))",
    "hypot": "hypot({0}, {1})",
    "isnan": "{0} != {0}",
    "logaddexp": (
        "({0} == {1} ? {0} + log(({T})2) : fmax({0}, {1}) + log1p(exp(-fabs({0} - {1}))))"
    ),
    "maximum": "({0} != {0} || {1} != {1} ? {0} + {1} : fmax({0}, {1}))",
    "minimum": "({0} != {0} || {1} != {1} ? {0} + {1} : fmin({0}, {1}))",
    "power": "pow({0}, {1})",
    "reciprocal": "1 / {0}",
    "sign": "({0} < 0 || {0} > 0 ? copysign(({T})1, {0}) : {0} - {0})",
}
_OF_INTEGERS = {
    **_OF_NUMBERS,
    "absolute": "({0} > 0 ? {0} : -{0})",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
    "invert": "~{0}",
    "maximum": "({0} > {1} ? {0} : {1})",
    "minimum": "({0} < {1} ? {0} : {1})",
    "sign": "({0} > 0) - ({0} < 0)",
}
_OF_NATURALS = {**_OF_INTEGERS, "absolute": "{0}", "sign": "{0} > 0"}
_OF_TRUTHS = {
    **_COMPARED,
    "absolute": "{0}",
    "add": "{0} || {1}",
    "bitwise_and": "{0} && {1}",
    "bitwise_or": "{0} || {1}",
    "bitwise_xor": "{0} != {1}",
    "invert": "!{0}",
    "maximum": "{0} || {1}",
    "minimum": "{0} && {1}",
    "multiply": "{0} && {1}",
}
#: The name of steps that give the bits of bfloat16 of numbers that are rounded to it.
BITS = "bits_of_bfloat16"
#: The steps that give one of their operands, or its negative.
KEEPING = frozenset(
    "absolute conjugate copysign fabs fmax fmin maximum minimum negative positive where".split()
)
#: Forms by the kind of the numbers computed with. ``{T}`` is their type.
_FORMS = {"f": _OF_REALS, "i": _OF_INTEGERS, "u": _OF_NATURALS, "b": _OF_TRUTHS}


def kind_of(dtype: Any) -> str:
    """Return the kind of a dtype; that of bfloat16, which is unknown to NumPy, is ``"f"``."""
    return "f" if np.dtype(dtype).name in _SHORT else np.dtype(dtype).kind


def memory_type(dtype: Any) -> str | None:
    """Return the C type of a dtype's numbers in memory; None if kernels have none."""
    return _IN_MEMORY.get(np.dtype(dtype).name)


def compute_type(dtype: Any) -> str:
    """Return the C type in which a kernel computes with numbers of a dtype."""
    name = np.dtype(dtype).name
    return "float" if name in _SHORT else _IN_MEMORY[name]


def loaded(dtype: Any, text: str) -> str:
    """Return a number from memory, converted to its computation type."""
    short = _SHORT.get(np.dtype(dtype).name)
    return text if short is None else f"{short[0]}({text})"


def stored(dtype: Any, text: str) -> str:
    """Return a number in its computation type, converted for memory."""
    short = _SHORT.get(np.dtype(dtype).name)
    return text if short is None else f"{short[1]}({text})"


def expression(
    step: PlanStep,
    names: dict[Symbol, str] | None = None,
    number: Callable[[Any, Any], str | None] | None = None,
) -> str | None:
    """Return the expression of a step, in the computation type of its result; None without one.

    Parameters
    ----------
    step
        An elementwise step.
    names
        The names of its inputs; without them, the result only says whether there is a formula.
    number
        What writes a Python number as one of a dtype, in order; :func:`literal` by default.
    """
    number = literal if number is None else number
    out = step.out.dtype
    symbols = step.symbols
    if not symbols or any(memory_type(x.dtype) is None for x in (*symbols, step.out)):
        return None
    found = _form(step, symbols[0])
    if found is None:
        return None
    form, dtypes = found
    given = []
    for x, dtype in zip(step.inputs, dtypes, strict=True):
        if type(x) in SCALARS:
            text = number(x, dtype)
            if text is None:
                return None
        else:
            text = "x" if names is None else names[x]
            text = text if dtype == x.dtype else _converted(text, dtype)
        given.append(text)
    kind = compute_type(out)
    text = f"({kind})({form.format(*given, T=compute_type(dtypes[-1]))})"
    return loaded(out, stored(out, text))


def _choice(step: PlanStep) -> tuple[str, list[Any]]:
    return "{0} ? {1} : {2}", [np.dtype(bool), step.out.dtype, step.out.dtype]


def _cast(step: PlanStep) -> tuple[str, list[Any]]:
    return ("{0} != 0" if step.out.dtype.kind == "b" else "{0}"), [step.inputs[0].dtype]


def _rounded(step: PlanStep) -> tuple[str, list[Any]]:
    return "from_bfloat(to_bfloat({0}))", [step.inputs[0].dtype]


def _power(step: PlanStep) -> tuple[str, list[Any]] | None:
    out = step.out.dtype
    return (_OF_REALS["power"], [out, out]) if kind_of(out) == "f" else None


def _of_ufunc(step: PlanStep) -> None:
    """Leave an op to the form of NumPy's ufunc of its name, which is not the op's own kernel."""


#: The formulas of steps that are no ufuncs, by op name, which the plugin of this folder provides:
#: a function of the step returns an expression in CUDA C and the dtypes of its operands.
FORMULAS: dict[str, Callable[[PlanStep], tuple[str, list[Any]] | None]] = {
    "where": _choice,
    "cast": _cast,
    "round_to_bfloat16": _rounded,
    "power": _power,
    **dict.fromkeys(
        ("bitwise_and", "bitwise_or", "bitwise_xor", "fabs", "fmax", "fmin", "heaviside"), _of_ufunc
    ),
}


def _form(step: PlanStep, first: Symbol) -> tuple[str, list[Any]] | None:
    """Return a step's form, and the dtypes that it computes with."""
    out = step.out.dtype
    formula = registry().lowering(step.op, "cuda")
    found: tuple[str, list[Any]] | None = None if formula is None else formula(step)
    if found is not None:
        return found
    if step.op == BITS:
        return "to_bfloat({0})", [first.dtype]
    if step.op == "hits":
        return "{0} == {1}", [x.dtype for x in step.inputs]
    if step.op == "outside":
        return "{0} < 0 || {0} >= {1}", [first.dtype, np.dtype(np.int64)]
    ufunc = getattr(np, step.op, None)
    if not isinstance(ufunc, np.ufunc):
        return None
    given = [x.dtype if type(x) is Symbol else type(x) for x in step.inputs]
    try:
        *of, result = ufunc.resolve_dtypes((*given, None))
    except TypeError:
        return None
    if result != out or len(set(of)) != 1 or memory_type(of[0]) is None:
        return None
    form = _FORMS[kind_of(of[0])].get(step.op)
    return None if form is None else (form, of)


def _converted(text: str, dtype: Any) -> str:
    """Return a number converted to another dtype, in its computation type."""
    return loaded(dtype, stored(dtype, f"({compute_type(dtype)}){text}"))


def literal(value: Any, dtype: Any) -> str | None:
    """Return a Python number as a literal of a dtype; None if it is not a number of it."""
    kind = kind_of(dtype)
    if isinstance(value, complex) or (kind != "f" and isinstance(value, float)):
        return None
    if kind == "b":
        return "true" if value else "false"
    if kind in "iu":
        bounds = np.iinfo(dtype)
        if not bounds.min <= value <= bounds.max:
            return None
        # C cannot write the lowest integer: it would negate a number that is too large
        text = f"{value}ULL" if kind == "u" else f"({value + 1}LL - 1)"
        return f"(({compute_type(dtype)}){text})"
    number = float(np.asarray(value).astype(dtype))
    if compute_type(dtype) == "double":
        special, suffix = ("0x7ff8000000000000LL", "0x7ff0000000000000LL"), ""
        form = "__longlong_as_double({})"
    else:
        special, suffix, form = ("0x7fc00000", "0x7f800000"), "f", "__int_as_float({})"
    if isfinite(number):
        return f"({number.hex()}{suffix})"
    text = form.format(special[0] if isnan(number) else special[1])
    return f"(-{text})" if number < 0 else text
