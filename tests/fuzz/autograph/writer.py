"""Programs made at random of Python's statements, on state of the kinds in :mod:`.states`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from fuzz.autograph.states import STATES

__all__ = ["Line", "Program", "written"]

TOLD = "RESULT"


@dataclass(frozen=True)
class Line:
    """A line of a program: its depth, its text, and what it was drawn as."""

    depth: int
    text: str
    tag: str = ""


@dataclass(frozen=True)
class Program:
    """The lines of a program, and the expressions that it returns."""

    seed: int
    lines: tuple[Line, ...]
    told: tuple[str, ...]

    @property
    def text(self) -> str:
        """The program's source."""
        told = f"({', '.join(self.told)},)"
        body = ("    " * line.depth + line.text.replace(TOLD, told) for line in self.lines)
        return "\n".join(("def f(x):", "    reset()", *body, f"    return {told}", ""))

    @property
    def tags(self) -> tuple[str, ...]:
        """What its lines were drawn as."""
        return tuple(sorted({line.tag for line in self.lines if line.tag}))

    def without(self, first: int, end: int, *instead: Line) -> Program:
        """Return the program with other lines instead of some."""
        return replace(self, lines=(*self.lines[:first], *instead, *self.lines[end:]))


def written(seed: int) -> Program:
    """Return the program of a seed."""
    return Writer(seed).program(seed)


class Writer:
    """Writes a program; what is read has been assigned above, on some way at least."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[Line] = []
        self.known = ["a", "b"]
        self.loops = 0
        self.budget = self.random.choice((4, 6, 8))
        kinds = self.random.choices((0, 1, 2, 3), (2, 5, 4, 1))[0]
        self.states = self.random.sample(sorted(STATES), kinds)

    def program(self, seed: int) -> Program:
        """Return the whole program."""
        self.line(1, "a, b = x[0], x[1] * 1.5")
        for name in self.states:
            for text in STATES[name].made:
                self.put(1, text.format(), name)
        while self.budget > 0:
            self.statement(1)
        told = dict.fromkeys(["a", "b", *(t for s in self.states for t in STATES[s].told)])
        return Program(seed, tuple(self.lines), tuple(told))

    # -- expressions -------------------------------------------------------------------------------

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def name(self) -> str:
        return self.pick(*self.known)

    def number(self) -> str:
        return self.pick("0.5", "1.5", "-0.75", "2.0")

    def filled(self, text: str) -> str:
        """Return a text with each of its slots drawn anew."""
        draws: dict[str, Callable[[], str]] = {
            "v": self.value,
            "t": self.test,
            "n": self.name,
            "i": lambda: self.pick("0", "1"),
        }
        for slot, draw in draws.items():
            while "{" + slot + "}" in text:
                text = text.replace("{" + slot + "}", draw(), 1)
        return text.replace("{{", "{").replace("}}", "}")

    def read(self) -> str:
        if not self.states:
            return f"helper({self.name()}, {self.number()})"
        return self.filled(self.pick(*STATES[self.pick(*self.states)].reads))

    def value(self, depth: int = 0) -> str:
        a, b, c = self.name(), self.name(), self.number()
        kind = self.random.random()
        if kind < 0.25 and depth == 0:
            return self.read()
        if kind < 0.35:
            return c
        if kind > 0.985:
            return f"checked({a})"
        if kind < 0.42 and depth == 0:
            return f"({self.value(1)} if {self.test()} else {self.value(1)})"
        return self.pick(
            f"{a} * {c}",
            f"({a} + {b})",
            f"gt.sin({a}) * {b}",
            f"x[2] * {a}",
            f"helper({a}, {b})",
            a,
        )

    def test(self) -> str:
        a, b, c = self.name(), self.name(), self.pick("0.1", "-0.3", "0.6")
        if self.random.random() < 0.15:
            return f"{self.read()} > {c}"
        return self.pick(
            f"{a} > {c}",
            f"{a} > {c}",
            f"{a} < {b}",
            f"not {a} > {b}",
            f"{a} > {c} and {b} < 1.0",
            f"{a} < {c} or {b} > 0.0",
            f"-0.9 < {a} < {c}",
            f"flag({a})",
        )

    # -- statements --------------------------------------------------------------------------------

    def line(self, depth: int, text: str, tag: str = "") -> None:
        self.lines.append(Line(depth, text, tag))

    def put(self, depth: int, text: str, tag: str = "") -> None:
        """Write the lines of a text, which may be indented."""
        for one in text.split("\n"):
            deeper = (len(one) - len(one.lstrip(" "))) // 4
            self.line(depth + deeper, one.lstrip(" "), tag)

    def block(self, depth: int) -> None:
        for _ in range(self.random.choice((1, 1, 2, 3))):
            self.statement(depth)

    def change(self, depth: int) -> None:
        if not self.states:
            self.assign(depth)
            return
        name = self.pick(*self.states)
        text = self.pick(*STATES[name].changes)
        self.put(depth, self.filled(text), f"{name}: {text}")

    def assign(self, depth: int) -> None:
        name = self.pick("a", "b", "a", "b", "c", "e")
        self.line(depth, f"{name} = gt.tanh({self.value()} * 1.0)")
        if name not in self.known:
            self.known = [*self.known, name]

    def statement(self, depth: int) -> None:
        self.budget -= 1
        kinds = {"change": 8, "assign": 4}
        if self.budget > 0 and depth < 4:
            kinds |= {"branches": 7, "loop": 4, "leave": 2, "tried": 2, "held": 1, "defined": 1}
            kinds |= {"short": 1, "odd": 2}
            kinds["leave"] += 3 * bool(self.loops)
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        getattr(self, kind)(depth)

    def branches(self, depth: int) -> None:
        before, after = self.known, self.known
        for head in self.random.choice((("if",), ("if", "else"), ("if", "elif", "else"))):
            self.known = before
            self.line(depth, "else:" if head == "else" else f"{head} {self.test()}:", "if")
            self.block(depth + 1)
            after = sorted({*after, *self.known})
        self.known = after

    def leave(self, depth: int) -> None:
        self.line(depth, f"if {self.test()}:", "leave")
        kind = self.pick("return", *(["break", "continue", "raise"] * bool(self.loops)))
        if kind == "return":
            self.line(depth + 1, f"return {TOLD}", "return")
        elif kind == "raise":
            self.line(depth + 1, 'raise ValueError("left")', "raise")
        else:
            self.line(depth + 1, kind, kind)

    def loop(self, depth: int) -> None:
        n = f"n{len(self.lines)}"
        kind = self.pick("while", "true", "done", "over", "over", "over")
        known = self.known
        if kind == "while":
            self.line(depth, f"{n} = 0")
            self.line(depth, f"while {n} < 3 and ({self.test()}):", "while")
            self.line(depth + 1, f"{n} += 1")
        elif kind == "true":
            self.line(depth, f"{n} = 0")
            self.line(depth, "while True:", "while True")
            self.line(depth + 1, f"{n} += 1")
            self.line(depth + 1, f"if {n} > 2 or {self.test()}:")
            self.line(depth + 2, "break")
        elif kind == "done":
            self.line(depth, f"{n}, done{n} = 0, False")
            test = self.pick("not {}", "{} is False", "{} is not True", "{} == False")
            self.line(depth, f"while {test.format('done' + n)}:", "while done")
            self.line(depth + 1, f"{n} += 1")
            self.line(depth + 1, f"if {n} > 2 or {self.test()}:")
            self.line(depth + 2, f"done{n} = True")
        else:
            self.over(depth, n)
        self.loops += 1
        self.block(depth + 1)
        self.loops -= 1
        if self.random.random() < 0.15:
            self.line(depth, "else:", "loop else")
            self.block(depth + 1)
        self.known = sorted({*known, *self.known})

    def over(self, depth: int, n: str) -> None:
        """Write the head of a ``for``."""
        whole, float_ = f"i{n}", f"v{n}"
        target, source, known = self.random.choice(
            (
                (whole, "range(2)", ""),
                (whole, "range(3)", ""),
                (float_, "(0.5, -1.0, 1.5)", ""),
                (float_, "[a, b]", float_),
                (float_, "x", float_),
                (whole, "gt.arange(3)", ""),
                (f"{whole}, {float_}", "enumerate([a, b, a * b])", float_),
                (f"{whole}, {float_}", "enumerate(x)", float_),
                (f"{float_}, _", "zip([a, b], [1.0, 2.0])", float_),
                (f"{float_}, _", "zip(x, x)", float_),
                (f"_, {float_}", '{"k": a, "n": b}.items()', float_),
                (f"{float_}, *_", "[(a, 1.0), (b, 2.0)]", float_),
                (float_, "of([a, b])", float_),
                (float_, "reversed([a, b])", float_),
                (float_, "map(lambda q: q * 2.0, [a, b])", float_),
                (whole, "steps(2)", ""),
            )
        )
        self.line(depth, f"for {target} in {source}:", f"for in {source}")
        self.known = [*self.known, *([known] if known else [])]

    def tried(self, depth: int) -> None:
        before = self.known
        self.line(depth, "try:", "try")
        self.block(depth + 1)
        kind = self.pick("fail", "check", "raise", "under", "put", "assert", "key", "none")
        inside = {
            "fail": "a = fail(a)",
            "check": f"a = check({self.name()})",
            "raise": 'raise ValueError("in try")',
            "under": f'if {self.test()}:\n    raise ValueError("under")',
            "put": f"put_and_fail(seen, {self.name()})",
            "assert": f"assert {self.test()}",
            "key": 'a = {}["none"]',
            "none": "pass",
        }
        self.put(depth + 1, inside[kind], f"try {kind}")
        clauses = self.random.choice(
            (("except",), ("except", "else"), ("except", "finally"), ("finally",), ("again",))
        )
        if clauses == ("finally",) and kind != "none":
            clauses = ("except", "finally")
        for clause in clauses:
            self.known = before
            if clause in ("except", "again"):
                what = self.pick("ValueError", "Exception", "(ValueError, KeyError)")
                if kind in ("assert", "key"):
                    what = self.pick("(AssertionError, KeyError)", "Exception")
                self.line(depth, f"except {what}{self.pick('', ' as error')}:", "except")
            else:
                self.line(depth, f"{clause}:", f"try {clause}")
            self.block(depth + 1)
            if clause == "again" and self.random.random() < 0.3:
                self.line(depth + 1, "raise", "raise again")
        self.known = before

    def held(self, depth: int) -> None:
        """Write a ``with`` statement."""
        kind = self.pick("suppress", "swallow", "box", "tape", "null", "two")
        name = f"w{len(self.lines)}"
        head, last = {
            "suppress": (
                "suppress(ValueError)",
                self.pick(
                    "a = check(a)",
                    "a = fail(a)",
                    f'if {self.test()}:\n    raise ValueError("held")',
                    "pass",
                ),
            ),
            "swallow": (
                f"Swallow(Box(a)) as {name}",
                self.pick("a = check(a)", "a = fail(a)", f"{name}.w = a"),
            ),
            "box": (f"Box(a) as {name}", f"b = gt.tanh({name}.w + b)"),
            "tape": (
                f"gt.GradientTape() as {name}",
                f"{name}.watch(a)\nsq = a * a * b\nb = gt.tanh({name}.gradient(sq, a))",
            ),
            "null": ("contextlib.nullcontext()", "pass"),
            "two": (f"Box(a) as {name}, Box(b) as {name}b", f"a = gt.tanh({name}.w + {name}b.v)"),
        }[kind]
        known = self.known
        self.line(depth, f"with {head}:", f"with {kind}")
        self.block(depth + 1)
        self.put(depth + 1, last, f"with {kind}")
        self.known = known if kind in ("suppress", "swallow") else self.known

    def defined(self, depth: int) -> None:
        """Write an inner function, and call it."""
        name, known, loops = f"h{len(self.lines)}", self.known, self.loops
        # it only reads the variables outside, so that its own assignments need other names
        self.line(depth, f"def {name}(v, k=a):", "def")
        start = len(self.lines)
        self.known, self.loops, states = ["v", "k"], 0, self.states
        kind = self.pick("one", "one", "two")
        for _ in range(1 if kind == "one" else 2):
            self.inner(depth + 1)
        self.known, self.loops, self.states = known, loops, states
        if start == len(self.lines):
            self.line(depth + 1, "pass")
        self.line(depth + 1, "return v * 0.5")
        call = self.pick(f"{name}({self.name()})", f"apply({name}, b)", f"{name}(b, k=1.0)")
        target = self.pick("a = gt.tanh({})", "{}", "b = gt.tanh({} * 1.0)")
        self.line(depth, target.format(call), "def call")

    def inner(self, depth: int) -> None:
        """Write a statement of an inner function that assigns none of the outer variables."""
        if self.random.random() < 0.5:
            self.line(depth, f"if {self.test()}:", "def if")
            depth += 1
        for _ in range(9 * bool(self.states)):
            name = self.pick(*self.states)
            text = self.pick(*STATES[name].changes)
            if (" = " not in text and "=" not in text.split("(")[0]) or "[" in text.split("=")[0]:
                self.put(depth, self.filled(text), f"def {name}: {text}")
                return
        self.line(depth, "v = v * 2.0")

    def short(self, depth: int) -> None:
        """Write an expression in which a part may not run."""
        v = self.read()
        self.line(
            depth,
            self.pick(
                f"{self.test()} and {v}",
                f"{self.test()} or {v}",
                f"a = gt.tanh({v} * 1.0 if {self.test()} else b)",
                f"b = b if {self.test()} and {v} > 0.1 else a",
                f"b = b if {self.test()} or {v} > 0.1 else a",
                f"a = gt.tanh(a * (0.1 < {v} < 0.9))",
                f"b = b if any(q > {v} for q in (a, 0.3)) else a",
            ),
            "short circuit",
        )

    def odd(self, depth: int) -> None:
        """Write one of the rarer statements."""
        v, t = self.value(), self.test()
        n = f"o{len(self.lines)}"
        text = self.pick(
            "a, b = b, a",
            f"a, *{n} = [b, {v}, a]\nb = gt.tanh({n}[0] * 1.0)",
            f"({n}, (a, _)) = (a, (b, {v}))",
            f"{n} = {v}\nif {t}:\n    del {n}",
            f"{n} = a\n{n} += {v}\nb = gt.tanh({n})",
            "assert a < 50.0",
            f"assert {t} or True",
            f"if ({n} := {v}) > 0.1:\n    a = gt.tanh({n} * a)",
            f"match {self.pick('1', '2')}:\n    case 1:\n        a = b\n    case _:\n        b = a",
            "a, b = pair(a, b)",
            f"{n} = [q * {v} for q in (a, b) if q > 0.1]\nb = gt.tanh(sum({n}) + b)",
            f"{n} = {{q: r for q, r in zip('kz', (a, b)) if r > 0.1}}\nb = {n}.get('k', a)",
            f"{n} = {{1.0 if q > 0.1 else 2.0 for q in (a, b)}}\nb = gt.tanh(b * len({n}))",
            f"def {n}():\n    return {n}v * 2.0\n{n}v = {v}\na = gt.tanh({n}())",
            f"{n} = lambda q: q if q > 0.1 else {v}\na = gt.tanh({n}(b) * 1.0)",
            f"if {t}:\n    {n} = lambda q: q * 2.0\nelse:\n    {n} = lambda q: q + 1.0\n"
            f"a = gt.tanh({n}(a))",
            f"if {t}:\n    {n} = 'p'\nelse:\n    {n} = 'q'\na = a * (1.0 if {n} == 'p' else 0.5)",
            f"if {t}:\n    {n} = None\nelse:\n    {n} = a\nif {n} is not None:\n    b = {n}",
            f"{n} = isinstance({v}, float)\nb = gt.tanh(b * (2.0 if {n} else 1.0))",
            f"if {t}:\n    pass\nelse:\n    a = gt.tanh({v} * 1.0)",
            f"{n} = a in [a, b]\nb = b if {n} else a",
            f"{n} = maybe(a)\nif {n} is None:\n    b = a",
            f"def {n}():\n    yield a\n    yield {v}\nb = gt.tanh(sum({n}()) + b)",
            f"{n} = ({v}, a)\nif {t}:\n    {n} = (*{n}[1:], b)\na, b = {n}",
            f"{n} = Pair({v}, a)\nif {t}:\n    {n} = {n}._replace(v=b)\nb = gt.tanh({n}.v * 1.0)",
            f"{n} = Point({v}, a)\nif {t}:\n    {n}.v = b\nb = gt.tanh({n}.v * 1.0)",
            f"{n} = Point({v}, a)\nif {t}:\n    {n} = Point(a, b)\nb = gt.tanh({n}.v * 1.0)",
            f"{n} = [a, b]\nfor i{n} in range(2):\n    if {t}:\n        {n}[i{n}] = {v}\n"
            f"b = gt.tanh({n}[0] + {n}[1])",
            "pass",
        )
        self.put(depth, text, "odd: " + text.replace(n, "n").split("\n")[0][:30])
