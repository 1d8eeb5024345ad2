"""Warnings about files that are valid, but may not be what the user wants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.extend import ConcreteFunction, Module, TensorSpec, default_dtype, flatten


def left_out(places: Sequence[str]) -> str:
    """Return a warning about what a file does not hold."""
    if not places:
        return ""
    return (
        f"not saved: {'; '.join(places)}. Files hold numbers, strings, arrays, tensors, ops, "
        "variables, modules, and lists, tuples, sets and dictionaries of them"
    )


def replaced_rules(found: Sequence[tuple[str, str]]) -> str:
    """Return a warning about modules that run ops with replaced rules, each with such an op."""
    if not found:
        return ""
    ops = ", ".join(map(repr, sorted({op for _, op in found})))
    return (
        f"{_first([where for where, _ in found])}: gradients use rules that were replaced in this "
        f"process (of op {ops}, or of one that its rule uses); to be the same elsewhere, they are "
        "saved as their traces, and come back without the methods of their classes"
    )


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def double_precision(module: Module, traces: Iterable[ConcreteFunction]) -> str:
    """Return a warning about values that are float64 by accident, and how to cast them.

    Parameters
    ----------
    module
        The module to save.
    traces
        Its traces.
    """
    if default_dtype() != "float32":
        return ""
    advice = (
        'Cast it with x.astype("float32"); if float64 is intended, say so: dtype="float64" of a '
        'layer or of a variable, gradtape.set_default_dtype("float64")'
    )
    found = [
        f"{module.name}.{path.replace('/', '.')}"
        for path, x in module.named_variables.items()
        if x.unasked and x.trainable and x.dtype == "float64"
    ]
    if found:
        return (
            f"{_first(found)}: float64, NumPy's default, takes twice the memory and time of "
            f"float32. {advice}"
        )
    floats = [x for x in flatten(module.call_signatures()) if isinstance(x, TensorSpec)]
    kinds = {x.dtype.name for x in floats if x.dtype.kind == "f"}
    held = {v.dtype.name for v in module.trainable_variables}
    if kinds == {"float64"} and held == {"float32"} and any(map(_widens, traces)):
        return (
            f"{module.name} has float32 variables, but was only called with float64 data, NumPy's "
            f"default: it computes in float64. {advice}"
        )
    return ""


def _widens(trace: ConcreteFunction) -> bool:
    """Return whether a step of a trace makes float64."""
    return any(x.dtype == "float64" for node in trace.graph.nodes for x in node.outputs)
