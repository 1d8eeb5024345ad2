"""Warnings about files that are valid, but may not be what the user wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.extend import Module, TensorSpec, Variable, default_dtype, flatten

__all__ = ["double_precision", "left_out"]


def left_out(places: Sequence[str]) -> str:
    """Say what a file does not hold."""
    if not places:
        return ""
    return (
        f"not saved: {'; '.join(places)}. Files hold numbers, strings, arrays, tensors, ops, "
        "variables, modules, and lists, tuples, sets and dictionaries of them"
    )


def double_precision(module: Module) -> str:
    """Say what is float64 though the default dtype is not, and how to cast it."""
    if default_dtype() != "float32":
        return ""
    advice = (
        'Cast it with x.astype("float32"); if float64 is intended, say so: dtype="float64" of a '
        'layer, gradtape.set_default_dtype("float64")'
    )
    modules = (module, *module.submodules)
    found = [place for item in modules for place in _doubles(item)]
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        return (
            f"{', '.join(found[:3])}{more}: float64, NumPy's default, takes twice the memory and "
            f"time of float32. {advice}"
        )
    floats = [x for x in flatten(module.call_signatures()) if isinstance(x, TensorSpec)]
    kinds = {x.dtype.name for x in floats if x.dtype.kind == "f"}
    if kinds == {"float64"} and any(v.dtype == "float32" for v in module.trainable_variables):
        return (
            f"{module.name} has float32 variables, but was only called with float64 data, NumPy's "
            f"default: it computes in float64. {advice}"
        )
    return ""


def _doubles(module: Module) -> Iterator[str]:
    if getattr(module, "dtype", None) == "float64":  # a layer was told so
        return
    for path, leaf in module.own_leaves():
        if isinstance(leaf, Variable) and leaf.trainable and leaf.dtype == "float64":
            yield f"{module.name}.{path.replace('/', '.')}"
