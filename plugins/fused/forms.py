"""Forms: the computations of steps in a loop, as instructions of LLVM.

Forms contain only operations with a single correct rounding, so that results are NumPy's, bit for
bit: arithmetic, roots, comparisons, conversions, and single-precision functions where they equal
NumPy's. Functions of the C library differ from NumPy's in the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, TypeAlias

import numpy as np

from ...core.extend import SCALARS, Symbol, registry
from ..planned.steps import Step, size_of
from .compiler import LIBRARY
from .functions import FUNCTIONS, Add, constant

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
#: Functions of the C library.
TRANSCENDENTAL = frozenset("cos exp expm1 log log1p sin tan tanh".split())
#: Up to this number of elements, these functions are faster in a loop than a ufunc call.
_FEW = 64
_BY_KIND = {"f": _OF_FLOATS, "i": _OF_INTEGERS, "b": _OF_TRUTHS}
#: The LLVM types of dtypes; that of booleans is for values, which take a byte in memory.
TYPES = {"bool": "i1", "int32": "i32", "int64": "i64", "float32": "float", "float64": "double"}


def _choice(step: Step) -> Form:
    out = step.out.dtype
    return ("select i1 {0}, {t} {1}, {t} {2}",), [np.dtype(bool), out, out]


def _cast(step: Step) -> Form:
    return (), [step.out.dtype]


#: The forms of steps that are no ufuncs, by op name, which a plugin provides: each is a function of
#: the step, and returns its :data:`Form` or None.
FORMS: dict[str, Callable[[Step], Form | None]] = {"where": _choice, "cast": _cast}


def form_of(step: Step, exact: Container[str]) -> Form | None:
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
        elif step.op in TRANSCENDENTAL and size_of(step.out) <= _FEW:
            form = _called(step.op, of[0].char)
    elif step.op == "outer_products":
        form, of = _outer_product(TYPES[out.name]), [out, out]
    else:
        return None
    if form is None or not all(map(_convertible, step.inputs, of)):
        return None
    return form, of


def _called(op: str, char: str) -> tuple[str, ...] | None:
    name = {"f": f"{op}f", "d": op}.get(char)
    if name is None or not hasattr(LIBRARY, name):
        return None
    return (f"call {{t}} @{name}({{t}} {{0}})",)


def _outer_product(kind: str) -> Callable[[Add, str, str], tuple[str, str]]:
    """Return a form for a product of finite factors, as a sum that starts with +0."""
    size, infinite = f"@llvm.fabs.{'f32' if kind == 'float' else 'f64'}", constant(float("inf"))

    def form(add: Add, x: str, y: str) -> tuple[str, str]:
        value = add(f"fadd {kind} 0.0, {add(f'fmul {kind} {x}, {y}')}")
        sizes = [add(f"call {kind} {size}({kind} {part})") for part in (x, y)]
        left = [add(f"fcmp uge {kind} {part}, {infinite}") for part in sizes]
        return value, add(f"or i1 {left[0]}, {left[1]}")

    return form


def _convertible(x: Any, target: Any) -> bool:
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
