"""Every change and read of :mod:`.states`, alone, in every place where a trace decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fuzz.autograph.states import STATES
from fuzz.autograph.writer import Line, Program

__all__ = ["PLACES", "each"]

#: Texts around a statement.
PLACES = {
    "if": "if a > 0.1:\n    {}",
    "else": "if a > 0.1:\n    pass\nelse:\n    {}",
    "elif": "if a > 0.6:\n    pass\nelif a > 0.1:\n    {}",
    "if, value used": "if a > 0.1:\n    c = b\n    {}\nelse:\n    c = a\na = c",
    "while": "k = 0\nwhile k < 2 and a > 0.1:\n    k += 1\n    {}",
    "while done": "k, end = 0, False\nwhile not end:\n    k += 1\n    {}\n"
    "    if k > 1 or a > 0.1:\n        end = True",
    "for": "for k in gt.arange(2):\n    {}",
    "after break": "for k in range(3):\n    if a > 0.1:\n        break\n    {}",
    "after continue": "for k in range(2):\n    if a > 0.1:\n        continue\n    {}",
    "after return": "if a > 0.1:\n    return RESULT\n{}",
    "else of for": "for k in range(2):\n    if a > 0.1:\n        break\nelse:\n    {}",
    "function": "def h():\n    {}\n    return 1.0\nif a > 0.1:\n    h()",
    "if in function": "def h(v):\n    if v > 0.1:\n        {}\n    return v\nh(a)",
    "lambda": "h = lambda: {}\nif a > 0.1:\n    h()",
    "and": "a > 0.1 and {} != 0.1",
    "or": "a > 0.1 or {} != 0.1",
    "choice": "b = {} if a > 0.1 else b",
    "test": "if a > 0.1 and {} != 0.1:\n    b = a",
    "any": "any(q > 0.1 and {} != 0.1 for q in (a, x[2]))",
    "list": "[{} for q in (a, x[2]) if q > 0.1]",
    "left by raise": "try:\n    if a > 0.1:\n        {}\n        raise ValueError('no')\n"
    "except ValueError:\n    pass",
    "after raise": "try:\n    if a > 0.1:\n        raise ValueError('no')\n    {}\n"
    "except ValueError:\n    pass",
    "except": "try:\n    if a > 0.1:\n        raise ValueError('no')\nexcept ValueError:\n    {}",
    "finally": "try:\n    if a > 0.1:\n        return RESULT\nfinally:\n    {}",
    "suppress": "with suppress(ValueError):\n    check(a)\n    {}",
    "with in if": "if a > 0.1:\n    with contextlib.nullcontext():\n        {}",
}
_FUNCTIONS = ("function", "if in function")
_EXPRESSIONS = ("lambda", "and", "or", "choice", "test", "any", "list")


def each(place: str) -> Iterator[tuple[str, str, Program]]:
    """Give the state, the statement or expression, and the program of each at a place."""
    for name, state in STATES.items():
        for text in (*state.changes, *state.reads):
            read = text in state.reads
            if place in _EXPRESSIONS and not (read or _is_expression(text)):
                continue
            if place in _FUNCTIONS and not read and _assigns_name(text):
                continue
            for value in ("(b * 0.5)", "2.0") if "{v}" in text else ("",):
                yield name, text, _program(name, text, value, place, read)


def _program(name: str, text: str, value: str, place: str, read: bool) -> Program:
    state = STATES[name]
    slots = {"v": value, "t": "(b > 0.0)", "n": "b", "i": "1"}
    filled = text.format(**slots)
    if read and place not in _EXPRESSIONS:
        filled = f"{'e' if place in _FUNCTIONS else 'b'} = gt.tanh({filled} * 1.0)"
    made = [line for part in state.made for line in part.format().split("\n")]
    lines = ["a, b = x[0], x[1] * 1.5", *made]
    for line in PLACES[place].split("\n"):
        indent = line[: len(line) - len(line.lstrip(" "))]
        inside = filled.split("\n") if line.strip() == "{}" else [filled]
        lines += [
            line.replace("{}", one) if line.strip() != "{}" else indent + one for one in inside
        ]
    parts = [Line(1 + _depth(line), line.lstrip(" "), name) for line in lines]
    return Program(0, tuple(parts), tuple(dict.fromkeys(("a", "b", *state.told))))


def _depth(line: str) -> int:
    return (len(line) - len(line.lstrip(" "))) // 4


def _is_expression(text: str) -> bool:
    try:
        compile(text.format(v="1", t="1", n="a", i="1"), "", "eval")
    except SyntaxError:
        return False
    return True


def _assigns_name(text: str) -> bool:
    """Return whether a statement assigns a plain name, which in a function is another variable."""
    tree = ast.parse(text.format(v="1", t="1", n="a", i="1"))
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return any(isinstance(name.ctx, (ast.Store, ast.Del)) for name in names)
