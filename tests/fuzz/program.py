"""Random programs as text: lines of ops over named values, to be run, frozen and printed."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gradtape as gt

__all__ = ["PRELUDE", "Line", "Program"]

Array = NDArray[Any]

#: Functions that programs may call, as they are printed.
PRELUDE = {
    "cubed": """@gt.custom_gradient
def cubed(x):
    return x * x * x, lambda g: 3.0 * g * x * x""",
    "paired": """@gt.custom_gradient
def paired(x, y):
    z = x * y
    return (gt.tanh(z), x - y), lambda a, b: (
        a * y * (1.0 - gt.tanh(z) ** 2) + b, a * x * (1.0 - gt.tanh(z) ** 2) - b
    )""",
    "nested_rule": """@gt.custom_gradient
def nested_rule(x):
    return cubed(gt.sin(x)), lambda g: 3.0 * g * gt.sin(x) ** 2 * gt.cos(x)""",
    "weighted": """@gt.custom_gradient
def weighted(x, y, factor=0.5):
    return factor * x * gt.sin(y), lambda g: (
        factor * g * gt.sin(y), factor * g * x * gt.cos(y)
    )""",
    "rooted": """@gt.custom_gradient
def rooted(x):
    return gt.sqrt(x), lambda g: 0.5 * g / rooted(x)""",
    "waving": """@gt.custom_gradient
def waving(x):
    return gt.sin(x), lambda g: g * turning(x)
@gt.custom_gradient
def turning(x):
    return gt.cos(x), lambda g: -g * waving(x)""",
    "scaled_by": """def scaled_by(w):
    @gt.custom_gradient
    def scaled(x):
        t = gt.tanh(w)
        return x * t, lambda g, variables=(): (g * t, [g * x * (1.0 - t ** 2)])
    return scaled if isinstance(w, gt.Variable) else lambda x: x * gt.tanh(w)""",
    "nested_by": """def nested_by(w):
    @gt.custom_gradient
    def nested(x):
        t = gt.tanh(w)
        return scaled_by(w)(gt.sin(x)), lambda g, variables=(): (
            g * t * gt.cos(x), [g * gt.sin(x) * (1.0 - t ** 2)]
        )
    return nested if isinstance(w, gt.Variable) else lambda x: gt.sin(x) * gt.tanh(w)""",
    "noise": """def noise(shape):
    from gradtape.core.extend import as_shape, ops
    shape = as_shape(shape, "noise")
    return ops["random_normal"](gt.constant([7, 3]), shape=shape, dtype="float64")""",
}

_NAME = re.compile(r"\b[vwx]\d+\b")


@dataclass(frozen=True)
class Line:
    """One line: ``name = text``, with ``{0}``, ``{1}`` for the names of its operands.

    If ``assigns`` names a variable, the line calls its method; ``stops`` marks ``stop_gradient``.
    """

    name: str
    text: str
    operands: tuple[str, ...] = ()
    assigns: str | None = None
    stops: bool = False

    @property
    def code(self) -> str:
        """The expression, with the names of its operands."""
        return self.text.format(*self.operands)


@dataclass(frozen=True)
class Program:
    """Inputs, variables and lines; a program returns the values of ``outputs``."""

    inputs: dict[str, Array]
    variables: dict[str, Array]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]
    seed: int = 0
    #: values of the lines when the program was drawn
    values: dict[str, Array] = field(default_factory=dict, compare=False)

    @property
    def stateful(self) -> bool:
        """Whether a line assigns to a variable."""
        return any(line.assigns for line in self.lines)

    def source(self) -> str:
        """Return the program as a function of its inputs, which captures its variables."""
        body = [
            f"    {line.code}" if line.assigns else f"    {line.name} = {line.code}"
            for line in self.lines
        ]
        head = f"def program({', '.join(self.inputs)}):"
        return "\n".join([head, *body, f"    return {', '.join(self.outputs)},"])

    def frozen_source(self) -> str:
        """Return it as a function of inputs and variables, with values fixed behind stops.

        ``F`` holds the values of ``stop_gradient`` and of assignments. A read after an assignment
        depends on the variable, but not on the value that was assigned. It has a name of its own:
        a function from before the assignment may run again.
        """
        body: list[str] = []
        names: dict[str, str] = {}
        for i, line in enumerate(self.lines):
            if line.assigns:
                v = line.assigns
                names[v] = f"{v}_{i}"
                body.append(f"    {names[v]} = F[{line.name!r}] + ({v} - F[{v!r}])")
            elif line.stops:
                body.append(f"    {line.name} = F[{line.name!r}]")
            else:
                code = _NAME.sub(lambda found: names.get(found[0], found[0]), line.code)
                body.append(f"    {line.name} = {code.replace('.value', '')}")
        head = f"def program({', '.join([*self.inputs, *self.variables])}):"
        outputs = [names.get(name, name) for name in self.outputs]
        return "\n".join([head, *body, f"    return {', '.join(outputs)},"])

    def prelude(self) -> list[str]:
        """Return the definitions that the program's text needs."""
        text = " ".join(line.text for line in self.lines)
        for name, other in (("nested_rule", "cubed"), ("nested_by", "scaled_by")):
            text += f" {other}" if name in text else ""
        return [PRELUDE[name] for name in PRELUDE if name in text]

    def function(self, variables: dict[str, Any]) -> Callable[..., tuple[Any, ...]]:
        """Return the program as a callable that captures ``variables``."""
        return _defined(self.source(), variables)

    def frozen(self) -> Callable[..., tuple[Any, ...]]:
        """Return the program as a callable of inputs and variables that assigns nothing."""
        made = {v: gt.Variable(x) for v, x in self.variables.items()}
        given: dict[str, Any] = {v: gt.constant(x) for v, x in self.variables.items()}
        if any(line.assigns or line.stops for line in self.lines):
            scope = dict(_helpers(), **made, **{n: gt.constant(x) for n, x in self.inputs.items()})
            for line in self.lines:
                value = eval(line.code, scope)
                if line.assigns:
                    given[line.name] = gt.constant(made[line.assigns].numpy())
                else:
                    scope[line.name] = value
                    if line.stops:
                        given[line.name] = gt.constant(value.numpy())
        return _defined(self.frozen_source(), {"F": given})

    def pruned(self) -> Program:
        """Return the program without lines, inputs and variables that nothing depends on."""
        needed, kept = set(self.outputs), []
        for line in reversed(self.lines):
            if line.name in needed or (line.assigns in needed):
                needed.update(_NAME.findall(line.code))
                kept.append(line)
        return replace(
            self,
            lines=tuple(reversed(kept)),
            inputs={k: x for k, x in self.inputs.items() if k in needed} or self.inputs,
            variables={k: x for k, x in self.variables.items() if k in needed},
        )

    def setup(self) -> Iterator[str]:
        """Give lines of text that define inputs, variables and the program."""
        yield "import numpy as np\nimport gradtape as gt\n"
        for name, x in self.inputs.items():
            yield f"{name} = gt.constant({literal(x)})"
        for name, x in self.variables.items():
            yield f"{name} = gt.Variable({literal(x)})"
        yield "\n"
        for text in self.prelude():
            yield text + "\n\n"
        yield self.source() + "\n"


def literal(x: Array) -> str:
    """Return an expression that makes an array."""
    if x.size == 0:
        return f"np.zeros({x.shape}, {x.dtype.name!r})"
    return f"np.array({x.tolist()!r}, {x.dtype.name!r})".replace("nan", "np.nan").replace(
        "inf", "np.inf"
    )


def _helpers() -> dict[str, Any]:
    """Return a fresh namespace for programs."""
    scope: dict[str, Any] = {"np": np, "gt": gt}
    for text in PRELUDE.values():
        exec(_code(text), scope)
    return scope


@functools.lru_cache(maxsize=256)
def _code(source: str) -> CodeType:
    return compile(source, "<program>", "exec")


def _defined(source: str, extra: dict[str, Any]) -> Callable[..., tuple[Any, ...]]:
    scope = dict(_helpers(), **extra)
    exec(_code(source), scope)
    made: Callable[..., tuple[Any, ...]] = scope["program"]
    return made
