"""Loops: the bodies of scans, as lines that run once for each row.

The results of a step go straight into stacks. Each step reuses the memory of the step before. A
stacked result is computed in its row if the step that makes it can write to an array; otherwise it
is copied there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.extend import Symbol, has_unknown_sizes, registry
from ..batching import transposed_copy, turned_before
from ..lowering import Lowering
from ..steps import PlanStep, StepKind, shape_of
from .emission import Emission

#: Steps that write their result to an array that they receive.
_WRITING = frozenset(
    {
        StepKind.ELEMENTWISE,
        StepKind.JOIN,
        StepKind.KERNEL,
        StepKind.PRODUCT,
        StepKind.REDUCTION,
    }
)


def write_loop(emission: Emission, step: PlanStep) -> None:
    """Write the call of a loop's function, and provide the stacks that it fills.

    Parameters
    ----------
    emission
        The emission that is being written.
    step
        The loop.
    """
    carried = step.params["carried"]
    stacks = step.outputs[carried:]
    for out in stacks:
        if out in emission.fresh:
            emission.lines.append(f"{emission.name(out)} = {emission.empty(out)}")
        else:
            emission.names[out] = emission.buffer(out)
    body = LoopBody(step, emission)
    emission.bodies.append((step.params["length"], body))
    run = emission.bind(body.function(), "k")
    given = [*emission.arguments(step), *map(emission.name, stacks)]
    targets = "".join(f"{emission.name(x)}, " for x in step.outputs[:carried])
    emission.lines.append(f"{targets}{'= ' if targets else ''}{run}({', '.join(given)})")


class LoopBody(Emission):
    """The function of a loop: its inputs are the carry, scanned and captured values, and stacks.

    Parameters
    ----------
    step
        The loop.
    around
        The emission that calls it.
    """

    def __init__(self, step: PlanStep, around: Emission) -> None:
        self.settings = step.params
        carried, program = step.params["carried"], step.params["program"]
        lowered = Lowering(program, registry().host_backend, ())
        fixed = set(program.inputs[carried + step.params["scanned"] :])
        length = step.params["length"]
        lowered.steps, self._turned = turned_before(lowered.steps, fixed, length)
        makers = {s.outputs[0]: s for s in lowered.steps if s.kind in _WRITING}
        self._targets = [f"o{i}" for i in range(len(lowered.outputs) - carried)]
        placed: dict[Symbol, str] = {}
        for x, row in zip(lowered.outputs[carried:], self._targets, strict=True):
            if x in makers and shape_of(x):
                placed.setdefault(x, row)
        emitter, writer = around.emitter, write_loop
        models = self._models(program.inputs, step, around)
        super().__init__(lowered, emitter, None, around.reporting, writer, placed, carried, models)
        # without a step, the carry that is returned is the caller's own array
        self._own = set(makers) - set(self.names) if step.params["length"] else set()

    def _models(self, inputs: Sequence[Symbol], step: PlanStep, around: Emission) -> dict[Any, Any]:
        """Return arrays with the strides of scanned rows, and of captured values."""
        carried, scanned = self.settings["carried"], self.settings["scanned"]
        found = {}
        for i, (x, outer) in enumerate(zip(inputs, step.inputs, strict=True)):
            if i >= carried and type(outer) is Symbol and not has_unknown_sizes(outer.shape):
                model = around.strides.model(outer)
                if i >= carried + scanned:
                    found[x] = model
                elif len(model):
                    found[x] = model[0, ...]
        return found

    def function(self) -> Callable[..., list[Any]]:
        """Write and compile the loop."""
        carried, scanned = self.settings["carried"], self.settings["scanned"]
        inputs, outputs = self.lowered.inputs, self.lowered.outputs
        for i, x in enumerate(inputs):
            self.names[x] = f"x{i}"
        for x, copy in self._turned.items():
            self.names[copy] = f"{self.names[x]}_turned"
        self.run_moments()
        for x, row in zip(outputs[carried:], self._targets, strict=True):
            if self.name(x) != row:
                self.lines.append(f"{row}[...] = {self.name(x)}")
        names = [self.names[x] for x in inputs]
        ends = [self.name(x) for x in outputs[:carried]]
        if ends:
            self.lines.append(f"{', '.join(names[:carried])}, = {', '.join(ends)},")
        rows = [*names[carried : carried + scanned], *self._targets]
        along = ", ".join([f"range({self.settings['length']})", *(f"rows(all_{x})" for x in rows)])
        self.scope["rows"] = _backwards if self.settings["reverse"] else _forwards
        head = f"for {', '.join(['_', *rows])}, in zip({along}):"
        self.scope["turned"] = transposed_copy
        before = [f"{self.names[y]} = turned({self.names[x]})" for x, y in self._turned.items()]
        self.lines = [*before, head, *(f"    {line}" for line in [*self.lines, "pass"])]
        own = [
            name if x in self._own else f"{name}.copy()"
            for x, name in zip(outputs[:carried], names, strict=False)
        ]
        self.lines += ["give(arena)", f"return [{', '.join(own)}]"]
        for i, name in enumerate(names[carried : carried + scanned], carried):
            names[i] = f"all_{name}"
        return self.compiled([*names, *(f"all_{x}" for x in self._targets)])


def _forwards(stack: Any) -> Any:
    """Return the rows of a stack in order, as arrays."""
    return stack if stack.ndim > 1 else [stack[i, ...] for i in range(len(stack))]


def _backwards(stack: Any) -> Any:
    return _forwards(stack[::-1])
