"""Drawing of programs: one op after another, with suitable operands, away from kinks."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.program import Array, Line, Program, _helpers
from fuzz.size_templates import SIZES
from fuzz.templates import OF_VARIABLES, TEMPLATES, Template

__all__ = ["Draw", "drawn"]

LARGEST = 48  # elements of a value, at most
BIGGEST = 60.0  # absolute value of an element, at most
MARGIN = 0.03  # minimum distance from a kink


def _matrix(x: Array) -> bool:
    return x.ndim >= 2 and x.shape[-1] == x.shape[-2] >= 1 and x.shape[-1] <= 4


def _apart(x: Array) -> bool:
    flat = np.sort(x.ravel())
    return 1 <= x.size <= 24 and (x.size == 1 or bool(np.diff(flat).min() > MARGIN))


def _conditioned(x: Array) -> bool:
    return _matrix(x) and bool(np.all(np.linalg.cond(x) < 40.0))


def _spectrum_apart(x: Array) -> bool:
    if not _conditioned(x):
        return False
    values = np.linalg.svd(x, compute_uv=False), np.linalg.eigvalsh(x + np.swapaxes(x, -1, -2))
    return all(bool(np.all(np.abs(np.diff(v)) > MARGIN)) for v in values)


#: Kinds of operands: a condition for values, and how to make such a value from another (or None).
KINDS: dict[str, tuple[Callable[[Array], bool], str | None]] = {
    "r": (lambda x: x.dtype.kind == "f", None),
    "f": (lambda x: True, None),
    "c": (lambda x: x.dtype.kind == "c", None),
    "p": (lambda x: x.dtype.kind == "f" and bool(np.all(x > 0.1)), "(gt.square({0}) * 0.5 + 0.4)"),
    "u": (lambda x: x.dtype.kind == "f" and bool(np.all(np.abs(x) < 0.9)), "(gt.tanh({0}) * 0.85)"),
    "o": (lambda x: x.dtype.kind == "f" and bool(np.all(np.abs(x) > MARGIN)), None),
    "d": (lambda x: x.dtype.kind == "f" and _apart(x), None),
    "d1": (lambda x: x.dtype.kind == "f" and x.ndim >= 1 and _apart(x), None),
    "n": (lambda x: x.dtype.kind == "f" and x.ndim >= 1 and x.size > 0, None),
    "v": (lambda x: x.dtype.kind == "f" and x.ndim == 1 and x.size > 0, None),
    "M": (lambda x: x.dtype.kind == "f" and x.ndim == 2 and x.size > 0, None),
    "A": (lambda x: x.dtype.kind == "f" and x.ndim >= 2 and x.size > 0, None),
    "q": (lambda x: x.dtype.kind == "f" and _matrix(x), None),
    "m": (lambda x: x.dtype.kind == "f" and _conditioned(x), None),
    "e": (lambda x: x.dtype.kind == "f" and _spectrum_apart(x), None),
    "n2": (lambda x: x.ndim >= 1 and x.size > 0, None),  # real or complex, with an axis
}


class Draw:
    """The values known when a line is drawn, and the operands chosen so far."""

    def __init__(self, rng: random.Random, known: dict[str, Array]) -> None:
        self.rng, self.known = rng, known
        self.operands: list[str] = []
        self.first: Array = np.zeros(())

    def take(self, kind: str, fits: Callable[[Array], bool] = lambda x: True) -> str | None:
        """Return the text of an operand of a kind, or None if there is none."""
        wanted, wrap = KINDS[kind]
        # recent values are chosen more often, so that programs are deep
        names = [n for n in self.known if fits(self.known[n])]
        good = [n for n in names if wanted(self.known[n])]
        if good and (wrap is None or self.rng.random() < 0.7):
            name = good[self._late(len(good))]
            return self._named(name)
        rest = [n for n in names if self.known[n].dtype.kind == "f"]
        if wrap is None or not rest:
            return None
        return wrap.format(self._named(rest[self._late(len(rest))]))

    def _late(self, count: int) -> int:
        return int(count * self.rng.random() ** 0.5)

    def _named(self, name: str) -> str:
        if not self.operands:
            self.first = self.known[name]
        self.operands.append(name)
        return f"{{{len(self.operands) - 1}}}"

    def axis(self) -> int:
        """Return an axis of the first operand."""
        n = self.first.ndim
        return self.rng.randrange(-n, n)

    def axes(self) -> Any:
        """Return an axis, several or None."""
        n = self.first.ndim
        if not n or self.rng.random() < 0.3:
            return None
        if n >= 2 and self.rng.random() < 0.3:
            return tuple(self.rng.sample(range(n), 2))
        return self.axis()


def _broadcasts(first: Array) -> Callable[[Array], bool]:
    def fits(x: Array) -> bool:
        try:
            shape = np.broadcast_shapes(first.shape, x.shape)
        except ValueError:
            return False
        return int(np.prod(shape)) <= LARGEST

    return fits


_SLOT = re.compile(r"<(\w+)>")


def expanded(template: Template, draw: Draw) -> str | None:
    """Return the text of a template with operands and parameters filled in."""
    if callable(template):
        return template(draw)
    parts, end = [], 0
    for slot in _SLOT.finditer(template):
        parts.append(template[end : slot.start()])
        end, found = slot.end(), _filled(slot[1], draw)
        if found is None:
            return None
        parts.append(found)
    return "".join([*parts, template[end:]])


def _filled(slot: str, draw: Draw) -> str | None:
    rng = draw.rng
    if slot in KINDS:
        return draw.take(slot)
    if slot in ("s", "sp", "su"):  # of the first operand's shape
        return draw.take(slot[1:] or "r", lambda x: x.shape == draw.first.shape)
    if slot in ("b", "bp", "bo"):  # broadcasts with the first operand
        return draw.take(slot[1:] or "r", _broadcasts(draw.first))
    if slot == "bf":
        return draw.take("f", _broadcasts(draw.first))
    if slot == "t":  # a matrix to multiply the first operand with, on the right
        inner = draw.first.shape[-1] if draw.first.ndim else -1
        return draw.take("f", lambda x: x.ndim in (1, 2) and x.shape[0] == inner)
    if slot == "rhs":
        n = draw.first.shape[-1]
        return draw.take("r", lambda x: x.ndim == 2 and x.shape[0] == n and x.size > 0)
    if slot == "ax":
        return str(draw.axis()) if draw.first.ndim else None
    if slot == "axes":
        return str(draw.axes())
    if slot == "bool":
        return str(rng.random() < 0.5)
    if slot == "num":
        return str(round(rng.choice([-1, 1]) * rng.uniform(0.2, 1.8), 2))
    if slot == "pos":
        return str(round(rng.uniform(0.3, 1.9), 2))
    if slot == "int":
        return str(rng.choice([-2, -1, 1, 2, 3]))
    if slot == "norm":
        return rng.choice(["None", "'ortho'", "'forward'"])
    raise KeyError(slot)


def _start(rng: random.Random, numbers: np.random.Generator) -> dict[str, Array]:
    a, b = rng.randint(1, 4), rng.randint(1, 4)
    shapes = [(a, b), (b,), (a, 1), (), (a, a), (2, a, b), (b, b), (2, b, b), (a,), (b, a)]
    found: dict[str, Array] = {}
    complex_too = rng.random() < 0.2
    for i in range(rng.randint(1, 3)):
        shape = rng.choice(shapes)
        size = numbers.uniform(0.15, 1.6, shape) * numbers.choice([-1.0, 1.0], shape)
        if complex_too and (rng.random() < 0.5 or not i):
            size = size * np.exp(1j * numbers.uniform(0, 6.28, shape))
        found[f"x{i}"] = np.asarray(size)
    return found


def _templates(rng: random.Random) -> list[tuple[Template, float]]:
    """Return the templates of lines; those with sizes need a rank, and are in most programs."""
    weight = rng.choice((0.0, 20.0, 60.0)) / len(SIZES)
    return [*TEMPLATES, *((template, weight) for template in SIZES)]


def drawn(seed: int, templates: Sequence[tuple[Template, float]] = ()) -> Program:
    """Return the program of a seed: 3 to 25 lines of ``templates`` (of all if none are given)."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    inputs = _start(rng, numbers)
    variables: dict[str, Array] = {}
    if rng.random() < 0.3:
        shape = rng.choice([x.shape for x in inputs.values()])
        variables = {"w0": np.asarray(numbers.uniform(0.3, 1.5, shape))}
    made = {v: gt.Variable(x) for v, x in variables.items()}
    scope = dict(_helpers(), **made, **{n: gt.constant(x) for n, x in inputs.items()})
    known, lines = dict(inputs), list[Line]()
    choices, weights = zip(*(templates or _templates(rng)), strict=True)
    length = rng.randint(3, 25)
    for _ in range(8 * length):
        if len(lines) == length:
            break
        line = _state_line(rng, known, variables, len(lines)) or _op_line(
            rng, known, len(lines), rng.choices(choices, weights)[0]
        )
        if line is None:
            continue
        before = {v: made[v].numpy() for v in made}
        value = _run(line, scope)
        if value is None or (line.assigns and not _usable(made[line.assigns].numpy())):
            for v, x in before.items():
                made[v].assign(x)
            continue
        lines.append(line)
        if not line.assigns:
            scope[line.name], known[line.name] = value, np.asarray(value.numpy())
    used = {name for line in lines for name in line.operands}
    outputs = [line.name for line in lines if line.name not in used and not line.assigns][-3:]
    return Program(inputs, variables, tuple(lines), tuple(outputs) or ("x0",), seed, known).pruned()


def _state_line(
    rng: random.Random, known: dict[str, Array], variables: dict[str, Array], number: int
) -> Line | None:
    """Return a line that reads or assigns a variable, or None."""
    if not variables or rng.random() > 0.25:
        return None
    variable = rng.choice(list(variables))
    shape, name = variables[variable].shape, f"v{number}"
    same = [n for n, x in known.items() if x.shape == shape and x.dtype.kind == "f"]
    if rng.random() < 0.4 and same:
        method = rng.choice(
            ["assign(gt.tanh({0}))", "assign_add(gt.tanh({0}))", "assign_sub({0} * 0.1)"]
        )
        return Line(name, f"{variable}.{method}", (rng.choice(same),), assigns=variable)
    if same:
        text = rng.choice(OF_VARIABLES)
        return Line(name, text.replace("VAR", variable), (rng.choice(same),))
    return Line(name, f"gt.tanh({variable})")


def _op_line(
    rng: random.Random, known: dict[str, Array], number: int, template: Template
) -> Line | None:
    draw = Draw(rng, known)
    text = expanded(template, draw)
    if text is None:
        return None
    return Line(f"v{number}", text, tuple(draw.operands), stops=text == "gt.stop_gradient({0})")


def _run(line: Line, scope: dict[str, Any]) -> Any:
    """Return the value of a line if later lines can use it."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = eval(line.code, scope)
    except (ValueError, TypeError, IndexError, np.linalg.LinAlgError):
        return None
    if line.assigns:
        return value
    usable = isinstance(value, gt.Tensor) and value.dtype.kind in "fc" and _usable(value.numpy())
    return value if usable else None


def _usable(x: Any) -> bool:
    x = np.asarray(x)
    if x.size > LARGEST or x.dtype.itemsize < 8:
        return False
    return bool(np.all(np.isfinite(x)) and (x.size == 0 or np.abs(x).max() < BIGGEST))
