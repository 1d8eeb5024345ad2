"""Functions from the lines of :mod:`.table.signatures`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gradtape

from .names import adapts, resolve
from .random import source
from .tensors import axes, convert_to_tensor, plain, sizes

__all__ = ["made"]

_TENSOR = "if type({0}) is not Tensor: {0} = convert({0})"
#: What is done to an argument, by its name.
_STEPS: dict[str, str] = {
    **dict.fromkeys(
        "a b features image images input input_tensor labels logits matrix params predictions rhs "
        "t targets tensor value values x y".split(),
        _TENSOR,
    ),
    **dict.fromkeys(("repeats", "shift", "multiples"), "{0} = plain({0})"),
    **dict.fromkeys(("dims", "multiples", "shape"), "{0} = sizes({0}, called)"),
    "data": _TENSOR,
    **dict.fromkeys(("fft_length", "perm"), "if {0} is not None: {0} = sizes({0}, called)"),
    "seed": "seed = source(seed)",
    "one_size": "if {0} is not None: {0} = sizes({0}, called)[0]",
    "axis": "if axis is not None and type(axis) is not int: axis = axes(axis)",
    "axes": "if axes is not None and type(axes) is not int: axes = as_axes(axes)",
    "keepdims": "if keepdims is not False: keepdims = bool(keepdims)",
}


def made(module: str, name: str, line: str) -> Callable[..., Any]:
    """Return the function of a line, as it stands in a module.

    Its code is written out: a call that looked up what to do would cost as much as many an op.
    """
    path, _, arguments = line.removesuffix(")").partition("(")
    arguments, _, added = arguments.partition(";")
    target = resolve(path)
    parameters, passed, steps, by_name = [], [], [], False
    for part in arguments.split(", "):
        part, _, kind = part.partition(":")
        argument = part.partition("=")[0]
        kind = kind or argument
        if part == "*":
            by_name = True
            continue
        parameters.append(part.removeprefix("_"))
        if not argument.startswith("_"):
            passed.append(f"{argument}={argument}" if by_name else argument)
            steps += [_STEPS[kind].format(argument)] if kind in _STEPS else []
    passed += [added] if added else []
    body = [*steps, f"return target({', '.join(passed)})"]
    lines = [f"def {name}({', '.join([*parameters, 'name=None'])}):", *body]
    scope = {
        "Tensor": gradtape.Tensor,
        "as_axes": axes,
        "axes": axes,
        "called": name,
        "convert": convert_to_tensor,
        "plain": plain,
        "source": source,
        "sizes": sizes,
        "target": target,
    }
    exec(compile("\n    ".join(lines), f"<{module}.{name}>", "exec"), scope)
    function: Any = scope[name]
    function.__module__ = module
    summary = inspect.getdoc(target) or ""
    function.__doc__ = summary.partition("\n\n")[0]
    return adapts(path)(function)
