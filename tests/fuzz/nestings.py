"""``nestings``: functions that wrap functions, in one another, in every order and mode.

A program nests ``recompute_grad``, ``custom_gradient``, ``function``, ``cond``, ``while_loop``,
``scan``, ``map`` and ``vmap``. Their functions use their arguments, variables and captured tensors.
Without the wrappers, and traced, saved or in forward mode, it must have the same values, and the
same derivatives of first and second order with respect to all of these.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt
from fuzz.commands import Clock

__all__ = ["MODES", "Nest", "add_arguments", "drawn", "run", "wrong"]

#: What programs compute with: two variables and two tensors that they capture or are given.
VARIABLES = {"v": np.array([0.6, -0.4]), "w": np.array(0.7)}
CAPTURED = {"c": np.array([0.3, 0.9]), "d": np.array(-0.8)}
X = np.array([0.5, -0.7])
SAME = 1e-9

#: Expressions of one tensor; in those of a rule that is not the derivative, nothing is captured.
SMOOTH = (
    "gt.tanh(A * v)",
    "gt.sin(A) * w",
    "A * A * 0.4 + v",
    "gt.tanh(A + w * v)",
    "gt.tanh(A * w) * 0.5 + A",
    "act(A)",
    "act_of_result(A)",
)
CAPTURING = (
    "gt.tanh(A * c)",
    "A * d + gt.sin(c)",
    "gt.cos(A * d) * c * v",
    "A * gt.stop_gradient(c) + c",
    "A + gt.exp(gt.stop_gradient(d)) * d * w",
)
#: Custom gradients that are not derivatives: a trace is compared with the eager run alone.
UNTRUE = ("untrue(A)", "untrue_of_captured(A)")

_WRAPPERS = (
    "recompute(lambda B: BODY)(A)",
    "recompute(lambda B: BODY)(A)",
    "recompute(lambda B, t: BODY + t * w)(A, A)",
    "recompute(lambda B: [BODY, A])(A * 0.5)[0]",
    "(lambda B: recompute(lambda: BODY)())(A * v)",
    "recompute(lambda B, r: BODY * r)(A, v)",
    "recompute(lambda B, r: BODY * r)(A, r=c)",
    "recompute(lambda B, r: BODY * r)(A, r=v)",
    "(lambda r: recompute(lambda B: BODY * r)(A))(v.value)",
    "(lambda r: recompute(lambda B: BODY * r + gt.stop_gradient(r))(A))(A * c)",
    "function(lambda B: BODY)(A)",
    "function(lambda B, r: BODY * r)(A, w)",
)
_CUSTOM = "custom(lambda B, c, d: BODY)(A, c, d)"
_FLOWS = (
    "gt.cond(PREDICATE, lambda: (lambda B: BODY)(A), lambda: OTHER)",
    "gt.cond(PREDICATE, lambda B: BODY, lambda B: B * v, A)",
    "gt.while_loop(lambda i, B: i < 2, lambda i, B: (i + 1, BODY), (0, A))[1]",
    "gt.scan(lambda B, s: (BODY + s, B * s), A, gt.stack([A, A * w]))[0]",
    "gt.sum(gt.scan(lambda B, s: (BODY * 0.5, B * s), A, gt.stack([A, A * w]))[1], axis=0)",
    "gt.sum(gt.map(lambda B: BODY, gt.stack([A, A * 0.5])), axis=0)",
    "gt.sum(gt.vmap(lambda B: BODY)(gt.stack([A, A * -0.5])), axis=0)",
    "gt.while_loop(lambda i, B: gt.logical_and(i < 2, gt.sum(B) < 1.0), "
    "lambda i, B: (i + 1, BODY), (0, A))[1]",
    "gt.grad(lambda B: gt.sum(BODY))(A)",
    "gt.jvp(lambda B: BODY, (A,), (A * c,))[1]",
    "gt.sum(gt.jacfwd(lambda B: BODY)(A), axis=0)",
    "gt.sum(gt.jacrev(lambda B: BODY)(A) * c, axis=0)",
)


class Nest(NamedTuple):
    """A program: an expression of ``x``, variables and captured tensors."""

    text: str
    seed: int = 0

    @property
    def true(self) -> bool:
        """Whether all of its gradients are derivatives."""
        return "untrue" not in self.text


def drawn(seed: int, deepest: int = 3) -> Nest:
    """Draw a program."""
    rng = random.Random(seed)
    return Nest(_expression(rng, rng.randint(1, deepest), "x", ["x"], True), seed)


def _expression(rng: random.Random, depth: int, a: str, scope: list[str], outer: bool) -> str:
    """Return an expression of the tensor named ``a``; ``scope`` has the others that it may use."""
    if depth <= 0 or rng.random() < 0.1:
        options = [*SMOOTH, *(CAPTURING if rng.random() < 0.6 else ())]
        return _put(rng.choice(UNTRUE if rng.random() < 0.06 else options), A=a)
    kind = rng.random()
    if kind < 0.15:
        first = _expression(rng, depth - 1, a, scope, outer)
        return f"({first} + {_expression(rng, depth - 1, rng.choice(scope), scope, outer)})"
    b = f"{'abefghkmnpqrs'[len(scope) % 13]}{depth}"
    given = _put(
        rng.choice(["A", "A", "A * v", "gt.sin(A)", "A + c"]), A=rng.choice([a, a, *scope])
    )
    custom = kind > 0.85
    text = _CUSTOM if custom else rng.choice(_WRAPPERS if kind < 0.5 else _FLOWS)
    inside = [b] if custom else [*scope, b]
    body = _expression(rng, depth - 1, b, inside, outer and not custom)
    if rng.random() < 0.3 and len(inside) > 1:
        body = f"({body} * {rng.choice(inside)} + {b})"
    number = f"gt.sum({given}) * {rng.choice([1, -1])} > {rng.choice([0.0, -9.0, 9.0, 0.1])}"
    predicate = rng.choice([number, number, "gt.sum(c) > 0.0", "w > 0.0"])
    other = _put(rng.choice(SMOOTH), A=a)
    return _put(text, A=given, B=b, BODY=body, PREDICATE=predicate, OTHER=other)


def _put(text: str, **parts: str) -> str:
    return re.sub(r"\b([A-Z]+)\b", lambda found: parts.get(found[1], found[1]), text)


# -- running ---------------------------------------------------------------------------------------


def custom(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with a custom gradient that is its derivative."""

    @gt.custom_gradient
    def ruled(*xs: Any) -> Any:
        def rule(u: Any, variables: Any = ()) -> Any:
            with gt.GradientTape(watch_accessed_variables=False) as tape:
                inside = [x * 1.0 for x in xs]
                tape.watch([*inside, *variables])
                y = f(*inside)
            sources = [*inside, *variables]
            found = tape.gradient(y, sources, u, unconnected_gradients="zero")
            grads = found[: len(xs)]
            return (grads, found[len(xs) :]) if variables else grads

        return f(*xs), rule

    return ruled


def _rules(v: Any, w: Any, c: Any, d: Any) -> dict[str, Any]:
    """Return functions with rules that read variables and captured tensors."""

    @gt.custom_gradient
    def act(x: Any) -> Any:
        def rule(u: Any, variables: Any) -> Any:
            slope = u * (1.0 - gt.tanh(v * x) ** 2)
            return slope * v, [slope * x]

        return gt.tanh(v * x), rule

    @gt.custom_gradient
    def act_of_result(x: Any) -> Any:
        y = gt.exp(w * x * 0.5)

        def rule(u: Any, variables: Any) -> Any:
            return u * y * w * 0.5, [gt.sum(u * y * x * 0.5)]

        # the result is another tensor than the one that the rule uses
        return y * 1.0, rule

    @gt.custom_gradient
    def untrue(x: Any) -> Any:
        return x * 1.0, lambda u: u * gt.cos(v * x)

    @gt.custom_gradient
    def untrue_of_captured(x: Any) -> Any:
        return x * 1.0, lambda u: u * gt.sin(c) * d * x

    return {
        "act": act,
        "act_of_result": act_of_result,
        "untrue": untrue,
        "untrue_of_captured": untrue_of_captured,
    }


PLAIN = {"recompute": lambda f: f, "custom": lambda f: f, "function": lambda f: f}
WRAPPED = {"recompute": gt.recompute_grad, "custom": custom, "function": gt.function}


class Case:
    """A program with its tensors, and the results that every mode must have."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        rng = np.random.default_rng(nest.seed)
        self.code = compile(nest.text, "<nesting>", "eval")
        self.variables = {name: gt.Variable(value, name=name) for name, value in VARIABLES.items()}
        self.given = [gt.constant(value) for value in (X, *CAPTURED.values())]
        self.weights = rng.uniform(0.5, 1.5, X.shape)
        shapes = [x.shape for x in (X, *CAPTURED.values(), *VARIABLES.values())]
        self.directions = [rng.uniform(-1.5, 1.5, shape) for shape in shapes]
        self.want = self.orders(self.run())

    def run(self, wrappers: Any = None, variables: Any = None) -> Callable[..., Any]:
        """Return the program as a function of ``x`` and captured tensors."""
        held = self.variables if variables is None else variables

        def program(x: Any, c: Any, d: Any) -> Any:
            scope = {"gt": gt, "x": x, "c": c, "d": d, **held, **(wrappers or WRAPPED)}
            scope.update(_rules(held["v"], held["w"], c, d))
            return eval(self.code, scope)

        return program

    def orders(
        self, f: Callable[..., Any], given: Any = None, variables: Any = None
    ) -> list[tuple[str, Any]]:
        """Return value, gradients and gradients of their slope along the directions."""
        xs = self.given if given is None else given
        sources = [*xs, *(self.variables if variables is None else variables).values()]
        with gt.GradientTape() as second:
            second.watch(list(xs))
            with gt.GradientTape() as first:
                first.watch(list(xs))
                y = f(*xs)
                loss = gt.sum(y * self.weights)
            slopes = first.gradient(loss, sources, unconnected_gradients="zero")
            along = _inner(self.directions, slopes)
        curves = second.gradient(along, sources, unconnected_gradients="zero")
        names = ["x", *CAPTURED, *VARIABLES]
        return [
            ("value", y),
            *zip([f"gradient of {name}" for name in names], slopes, strict=True),
            *zip([f"second order of {name}" for name in names], curves, strict=True),
        ]


Found = Iterator[tuple[str, Any, Any]]


def _inner(weights: Sequence[Any], values: Sequence[Any]) -> Any:
    total: Any = 0.0
    for weight, value in zip(weights, values, strict=True):
        total = total + gt.sum(weight * value)
    return total


def _beside(got: Any, want: Any, what: str) -> Found:
    for (name, mine), (_, right) in zip(got, want, strict=True):
        yield f"{what}, {name}", mine, right


def without_wrappers(case: Case) -> Found:
    """Without ``recompute_grad``, ``custom_gradient`` and ``function``."""
    if case.nest.true:
        yield from _beside(case.orders(case.run(PLAIN)), case.want, "without wrappers")


def traced(case: Case) -> Found:
    """As a traced function, of arguments and of captured tensors; with tapes around and inside."""
    run = case.run()
    yield from _beside(case.orders(gt.function(run)), case.want, "traced")
    specs = [gt.TensorSpec([None] * x.ndim, x.dtype) for x in case.given]
    of_any_size = gt.function(run, input_signature=specs)
    yield from _beside(case.orders(of_any_size), case.want, "traced for any size")
    inside = gt.function(lambda *xs: [y for _, y in case.orders(run, xs)])
    names = [name for name, _ in case.want]
    found = zip(names, inside(*case.given), strict=True)
    yield from _beside(found, case.want, "tapes in the trace")
    _, c, d = case.given
    capturing = gt.function(lambda x: run(x, c, d))
    around = case.orders(lambda x, c, d: capturing(x))
    yield from _beside(around, case.want, "a trace that captures")


def saved(case: Case) -> Found:
    """Saved and loaded."""
    dtype = "float64"
    specs = [gt.TensorSpec(x.shape, dtype) for x in case.given]

    class Model(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v, self.w = (gt.Variable(x, dtype=dtype) for x in VARIABLES.values())

        @gt.function(input_signature=specs)
        def __call__(self, x: Any, c: Any, d: Any) -> Any:
            return case.run(variables={"v": self.v, "w": self.w})(x, c, d)

    with tempfile.TemporaryDirectory() as folder:
        gt.save(Model(), Path(folder) / "m.h5", golden=False)
        loaded: Any = gt.load(Path(folder) / "m.h5")
    found = case.orders(loaded, variables={"v": loaded.v, "w": loaded.w})
    yield from _beside(found, case.want, "loaded")


def forward(case: Case) -> Found:
    """Forward mode, and forward mode of the gradient, eager and traced."""
    names = ["x", *CAPTURED, *VARIABLES]
    slopes = [y for name, y in case.want if name.startswith("gradient")]
    curves = [y for name, y in case.want if name.startswith("second")]
    variables = list(case.variables.values())
    primals = [*case.given, *variables]
    tangents = [gt.constant(d) for d in case.directions]
    for what, f in (("", case.run()), ("traced ", gt.function(case.run()))):
        with gt.ForwardAccumulator(primals, tangents) as ahead:
            y = f(*case.given)
            with gt.GradientTape() as tape:
                tape.watch(case.given)
                loss = gt.sum(f(*case.given) * case.weights)
            found = tape.gradient(loss, primals, unconnected_gradients="zero")
        tangent = ahead.jvp(y, "zero")
        slope = _inner(case.directions, slopes)
        yield f"{what}forward mode", gt.sum(tangent * case.weights), slope
        if case.nest.true:  # the Hessian is symmetric
            for name, mine, right in zip(names, found, curves, strict=True):
                mine = ahead.jvp(mine, "zero")
                yield f"{what}forward mode of the gradient of {name}", mine, right


def batched(case: Case) -> Found:
    """In ``vmap``, with tapes inside and outside, and in a trace; and in Jacobians."""
    run = case.run()
    x, c, d = case.given
    rows = [x, x * -0.6]
    each = [case.orders(run, [row, c, d]) for row in rows]
    want = [(name, gt.stack([a, b])) for (name, a), (_, b) in zip(*each, strict=True)]
    inside = gt.vmap(lambda x: [y for _, y in case.orders(run, [x, c, d])])
    names = [name for name, _ in want]
    stacked = gt.stack(rows)
    for what, f in (("vmap", inside), ("traced vmap", gt.function(inside))):
        yield from _beside(zip(names, f(stacked), strict=True), want, what)

    def outside(x: Any, c: Any, d: Any) -> Any:
        rows = gt.stack([x, x * -0.6])
        return gt.sum(gt.vmap(run, in_axes=(0, None, None))(rows, c, d), axis=0)

    def loop(x: Any, c: Any, d: Any) -> Any:
        return run(x, c, d) + run(x * -0.6, c, d)

    want = case.orders(loop)
    yield from _beside(case.orders(outside), want, "tapes around vmap")
    yield from _beside(case.orders(gt.function(outside)), want, "tapes around a traced vmap")
    for i, name in enumerate(("x", "c", "d")):
        right = gt.jacrev(loop, i)(x, c, d)
        yield f"jacfwd of vmap, {name}", gt.jacfwd(outside, i)(x, c, d), right
        yield f"jacrev of vmap, {name}", gt.jacrev(outside, i)(x, c, d), right


#: From the simplest on.
MODES: dict[str, Callable[[Case], Found]] = {
    "wrappers": without_wrappers,
    "traced": traced,
    "forward": forward,
    "batched": batched,
    "saved": saved,
}


def wrong(nest: Nest, modes: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Give the modes in which a program is wrong, and how."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        case = Case(nest)
        for mode in modes or MODES:
            said = _off(case, mode)
            if said:
                yield mode, said


def _off(case: Case, mode: str) -> str | None:
    try:
        for what, got, want in MODES[mode](case):
            mine, right = np.asarray(got.numpy()), np.asarray(want.numpy())
            scale = max(1.0, float(np.abs(right).max(initial=0.0)))
            if mine.shape != right.shape or not np.allclose(mine, right, 0.0, SAME * scale):
                return f"{what} is {mine.tolist()} for {right.tolist()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


# -- the command -----------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this fuzzer's own options to its parser."""
    parser.add_argument("--programs", metavar="N", type=int, help="stop after N programs")
    parser.add_argument("--mode", action="append", choices=[*MODES], help="only these modes (all)")
    parser.add_argument("--depth", metavar="N", type=int, default=3, help="deepest (%(default)s)")
    parser.add_argument(
        "--keep-going", action="store_true", help="do not stop at the first failure"
    )


def run(options: argparse.Namespace) -> int:
    """Run programs until the time is up; return 1 if one of them is wrong."""
    clock, done, failures = Clock(options.seconds, options.programs), 0, 0
    while clock.runs(done) and (options.keep_going or not failures):
        nest = drawn(options.seed + done, options.depth)
        done += 1
        for mode, said in wrong(nest, options.mode or ()):
            failures += 1
            print(f"\n# seed {nest.seed}, {mode}: {said}"[:700])
            print(nest.text, flush=True)
    print(f"nestings: {done} in {clock.elapsed:.0f} s, from seed {options.seed}; wrong: {failures}")
    return 1 if failures else 0
