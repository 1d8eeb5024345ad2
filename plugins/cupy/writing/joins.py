"""Joins: concatenated arrays, whose parts are written to their places where they are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from math import prod
from typing import Any

from ....core.extend import Symbol
from ...planned import PlanStep, StepKind, shape_of
from .formulas import memory_type
from .places import Place
from .source import KernelLaunch, Written, index_type, merged, reach, spread, unravelled


def has_kernels(item: Any) -> bool:
    """Return whether kernels of its own run a step, which read through views."""
    return isinstance(item, PlanStep) and item.kind in (StepKind.JOIN, StepKind.WRITTEN)


def parts_of_joins(
    items: Iterable[Any],
    needed: Container[Symbol],
    place: Callable[[Symbol], Place],
) -> dict[Symbol, Place]:
    """Return the places, in joined arrays, of values that only a join reads.

    Parameters
    ----------
    items
        The items of a plan, in order.
    needed
        The values that are read after the last item.
    place
        A function that returns the place of an input of a kernel.
    """
    uses: Counter[Symbol] = Counter()
    own: set[Symbol] = set()  # results of steps of groups, which are arrays
    joins = []
    for item in items:
        alone = isinstance(item, PlanStep)
        if alone and item.kind is StepKind.JOIN:
            joins.append(item)
        by_kernels = not alone or has_kernels(item)
        read = [x for step in item.members for x in step.symbols]
        results = {x for step in item.members for x in step.outputs}
        for x in read:
            home = place(x)[0] if by_kernels else x
            uses[home] += home not in results
        if not alone:
            spilled = getattr(item, "spilled", ())  # which are read from their own arrays
            arrays = {*item.outputs} - {*spilled}
            own.update(x for step in item.members if step.elementwise for x in step.outputs
                       if x in arrays)  # fmt: skip
    found: dict[Symbol, Place] = {}
    for join in joins:
        if not all(
            x in own and uses[x] == 1 and x not in needed and place(x)[0] is x for x in join.symbols
        ):
            continue
        shape, axis = shape_of(join.out), join.params["axis"]
        strides = tuple(prod(shape[a + 1 :]) for a in range(len(shape)))
        start = 0
        for x in join.symbols:
            found[x] = join.out, start * strides[axis], strides
            start += shape_of(x)[axis]
    return found


def joining(step: PlanStep, place: Callable[[Symbol], Place]) -> Written:
    """Return the kernel that concatenates arrays along an axis.

    Parameters
    ----------
    step
        A step of the kind ``JOIN``.
    place
        A function that returns the place of an input.
    """
    out, axis = step.out, step.params["axis"]
    shape, kind = shape_of(out), memory_type(out.dtype)
    places = [place(x) for x in step.inputs]
    rows = [spread(at, x, len(shape)) for x, at in zip(step.inputs, places, strict=True)]
    axes = merged(shape, [a == axis for a in range(len(shape))], rows)
    # the joined axis; all others are merged into axes before and after it
    at = next((f"k{i}" for i, (_, inside, _) in enumerate(axes) if inside), "0")
    names = {home: f"m{i}" for i, home in enumerate(dict.fromkeys(home for home, _, _ in places))}
    end, parts = 0, []
    for number, (x, (home, offset, _)) in enumerate(zip(step.inputs, places, strict=True)):
        begun, end = end, end + shape_of(x)[axis]
        terms = [str(offset - begun * rows[number][axis])]
        terms += [
            f"k{i} * ({steps[number]})" for i, (*_, steps) in enumerate(axes) if steps[number]
        ]
        parts.append(f"{at} < {end} ? {names[home]}[{' + '.join(terms)}]")
    parts[-1] = parts[-1].partition(" ? ")[2]
    total = prod(shape)
    index = index_type([total, *(reach(at, x) for x, at in zip(step.inputs, places, strict=True))])
    lines = unravelled([(i, n) for i, (n, _, _) in enumerate(axes)], "t")
    params = [f"const {kind}* {name}" for name in names.values()]
    text = "\n".join([
        f"typedef {index} I;",
        f'extern "C" __global__ void KERNEL({", ".join([*params, f"{kind}* out"])}) {{',
        f"    for (I t = blockIdx.x * (I)blockDim.x + threadIdx.x; t < {total};",
        "            t += (I)gridDim.x * blockDim.x) {",
        *(f"        {line}" for line in lines),
        f"        out[t] = {' : '.join(parts)};",
        "    }",
        "}",
    ])  # fmt: skip
    return [KernelLaunch(step.op, f"{text}\n", [*names, out], total)], []
