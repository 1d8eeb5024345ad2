"""Rules of ops that draw random numbers in compiled programs: kernels of a step of their own."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from ....core.extend import Node, Symbol, batch_rows
from ...planned import PlanStep, StepKind, shape_of, symbol_like
from ..writing.places import Place
from ..writing.source import KernelLaunch, Written
from .kernels import can_draw
from .samplers import SAMPLERS, SPLIT, Sampler, sampler_of, sampler_of_integers
from .sources import blocks_of, kernels, keys_at, scratch_for, sizes_for

if TYPE_CHECKING:
    from ..compiled.lowering import DeviceLowering


def _sampler(name: str, dtype: Any, bounds: Any) -> tuple[Sampler | None, dict[str, int]]:
    if name == "integers":
        return sampler_of_integers(*bounds)
    return (SPLIT if name == "split" else sampler_of(name, dtype)), {}


def _drawing(name: str) -> Callable[[Any, Node], bool]:
    """Return the rule of the ops of a distribution."""

    def rule(lowering: DeviceLowering, node: Node) -> bool:
        key, (out,) = node.inputs[0], node.outputs
        if type(key) is not Symbol:
            return False
        bounds = node.params.get("low"), node.params.get("high")
        sampler, _ = _sampler(name, out.dtype, bounds)
        # a rank's rows are known when the step runs
        if sampler is None or batch_rows.get() is not None:
            return False
        if not can_draw(key, out.dtype, prod(shape_of(out))):
            return False
        settings = {"distribution": name, "bounds": bounds}
        lowering.add(
            StepKind.WRITTEN, node.op.name, lowering.kernel(node), (key,), out,
            write=_written, **settings,
        )  # fmt: skip
        return True

    return rule


def _written(step: PlanStep, place: Callable[[Symbol], Place]) -> Written:
    """Return the kernels of a step, and the arrays that they use between them."""
    (key,), out = step.inputs, step.out
    sampler, bounds = _sampler(step.params["distribution"], out.dtype, step.params["bounds"])
    assert sampler is not None
    home, offset, strides = place(key)
    shape = shape_of(key)
    keys = prod(shape[:-1])
    sizes = sizes_for(sampler, keys, prod(shape_of(out)) // keys)
    found = kernels(
        sampler,
        out.dtype,
        key.dtype,
        sizes.tile,
        sizes.tiles == 1,
        keys_at(shape, offset, strides),
        tuple({**sizes.values(), **bounds}.items()),
    )
    scratch = {
        name: symbol_like(out, (size,), dtype)
        for name, (size, dtype) in scratch_for(sampler, sizes).items()
    }
    symbols = {"key": home, "out": out, **scratch}
    launches = [
        KernelLaunch(
            kernel.label,
            kernel.text,
            [symbols[name] for name in kernel.arrays],
            1,
            blocks_of(kernel, sampler, sizes),
        )
        for kernel in found
    ]
    return launches, [*scratch.values()]


RULES: dict[str, Callable[[Any, Node], bool]] = {
    **{f"random_{name}": _drawing(name) for name in (*SAMPLERS, "integers", "split")},
    **{f"random_{name}_like": _drawing(name) for name in SAMPLERS},
}
