"""A reader of model files written from docs/format.md and docs/format-ops.md alone.

It knows h5py, NumPy and the two pages, and nothing of gradtape. It runs graphs, and differentiates
them: by the few rules that the files in ``golden`` need, through custom gradients and rules of ops
as files hold them.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from page_ops import definitions
from xxhash import xxh3_128_digest

OPS = definitions()
OF_GRAPHS = {"cond", "scan", "while_loop"}


# -- arrays that are followed (sections 6 and 7) ---------------------------------------------------


class Box(np.ndarray):
    """An array whose operators are noted down."""

    def __array_ufunc__(self, function: Any, method: str, *xs: Any, **settings: Any) -> Any:
        return op(function.__name__, *xs)[0]

    def __array_function__(self, function: Any, types: Any, xs: Any, settings: Any) -> Any:
        return op(function.__name__, *xs[0], **settings)[0]

    def __getitem__(self, index: Any) -> Any:
        return op("getitem", self, index=(index,))[0]


#: What was computed, in order: what goes back through it, the inputs, the outputs.
TAPE: list[tuple[Callable[..., Any], Sequence[Any], list[Box]]] = []


def box(x: Any) -> Any:
    return np.asarray(x).view(Box)


def plain(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, np.ndarray) else x


def floating(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def op(name: str, *xs: Any, **params: Any) -> list[Any]:
    """Run an op, and note it down."""
    if name == "batch_norm_training":
        return batch_norm(*xs, **params)
    made = OPS[name](*map(plain, xs), **params)
    ys = [box(y) for y in (made if isinstance(made, (list, tuple)) else [made])]
    if any(map(floating, xs)) and any(map(floating, ys)):
        TAPE.append((lambda gs, xs, ys: BACK[name](gs[0], ys[0], *xs, **params), xs, ys))
    return ys


def batch_norm(x: Any, gamma: Any, beta: Any, axis: int, epsilon: float) -> list[Any]:
    """Return what the op does, by ops that have gradients of every order."""
    assert axis == -1
    over = tuple(range(x.ndim - 1))
    (mean,) = op("mean", x, axis=over)
    centred = x - mean
    (variance,) = op("mean", centred * centred, axis=over)
    return [centred / np.sqrt(variance + epsilon) * gamma + beta, mean, variance]


def turned(x: Any) -> Any:
    return op("swapaxes", x, axis1=-1, axis2=-2)[0]


#: What the gradient of an op's output becomes for its inputs; sums over what was broadcast follow.
BACK: dict[str, Callable[..., Any]] = {
    "add": lambda g, y, a, b: (g, g),
    "subtract": lambda g, y, a, b: (g, -g),
    "multiply": lambda g, y, a, b: (g * b, g * a),
    "divide": lambda g, y, a, b: (g / b, -g * y / b),
    "identity": lambda g, y, x: (g,),
    "negative": lambda g, y, x: (-g,),
    "sin": lambda g, y, x: (g * np.cos(x),),
    "cos": lambda g, y, x: (-g * np.sin(x),),
    "exp": lambda g, y, x: (g * y,),
    "tanh": lambda g, y, x: (g * (1 - y * y),),
    "sqrt": lambda g, y, x: (g / (2 * y),),
    "matmul": lambda g, y, a, b: (g @ turned(b), turned(a) @ g),
    "swapaxes": lambda g, y, x, **axes: op("swapaxes", g, **axes),
    "stack": lambda g, y, *xs, axis=0: [g[i] for i in range(len(xs))],
    "getitem": lambda g, y, x, *i, index: op("index_add_like", g, x, *i, index=index),
    "index_add_like": lambda g, y, h, like, *i, index: op("getitem", g, *i, index=index),
    "sum": lambda g, y, x, **over: op("unreduce_like", g, x, **over),
    "unreduce_like": lambda g, y, x, like, **over: op("sum", g, **over),
    "mean": lambda g, y, x, **over: [op("unreduce_like", g, x, **over)[0] / (x.size / y.size)],
    "max": lambda g, y, x, **over: [
        op("unreduce_like", g, x, **over)[0] * (plain(x) == plain(y)).astype(x.dtype)
    ],
    **dict.fromkeys(("cast", "cast_like"), lambda g, y, x, *like, **to: op("cast_like", g, x)),
    **dict.fromkeys(
        ("broadcast_to", "broadcast_like"),
        lambda g, y, x, *like, **to: op("unbroadcast_like", g, x),
    ),
    "unbroadcast_like": lambda g, y, x, like: op("broadcast_like", g, x),
    "shaped_like": lambda g, y, x, like, **what: (g,),
    "size_value": lambda g, y, like, **params: (None,),
}


def gradients(
    ys: Sequence[Any], seeds: Sequence[Any], sources: Sequence[Any], start: int = 0
) -> list[Any]:
    """Return the gradients of the sum of all products of ``ys`` and ``seeds``; None for no path.

    They go back as far as place ``start`` of the tape.
    """
    found: dict[int, Any] = {}

    def add(x: Any, g: Any) -> None:
        if plain(g).shape != x.shape or g.dtype != x.dtype:
            (g,) = op("unbroadcast_like", g, x)
        found[id(x)] = found[id(x)] + g if id(x) in found else g

    for y, seed in zip(ys, seeds, strict=True):
        add(y, seed if isinstance(seed, Box) else box(seed))
    for back, xs, made in TAPE[start:][::-1]:
        if any(id(y) in found for y in made):
            gs = [found.get(id(y), box(np.zeros(y.shape, y.dtype))) for y in made]
            for x, g in zip(xs, back(gs, xs, made), strict=False):
                if g is not None and floating(x):
                    add(x, g)
    return [found.get(id(x)) for x in sources]


def pull(function: Any, inputs: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
    """Return the gradients that ops of graphs need, zeros where there is no path."""
    # of each input its own: one may be given twice, or be made of another, which does not count
    inputs = [op("identity", x)[0] if floating(x) else x for x in inputs]
    start = len(TAPE)
    ys = [y for y in function(*inputs) if floating(y)]
    sources = [x for x in inputs if floating(x)]
    found = gradients(ys, seeds, sources, start)
    pairs = zip(found, sources, strict=True)
    return [box(np.zeros(x.shape, x.dtype)) if g is None else g for g, x in pairs]


# -- values (section 3) and formulas (section 6) ---------------------------------------------------

FORMULAS: dict[str, Any] = {
    "+": lambda *xs: sum(xs[1:], xs[0]),
    "*": lambda *xs: math.prod(xs[1:], start=xs[0]),
    "max": lambda *xs: max(xs),
    "min": lambda *xs: min(xs),
    "-": operator.sub,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "neg": operator.neg,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "int": int,
}


def value_of(encoded: Any, witnesses: Sequence[Any] = ()) -> Any:
    """Return a value; a formula among it is computed."""
    if isinstance(encoded, list):
        return [value_of(x, witnesses) for x in encoded]
    if not isinstance(encoded, dict):
        return encoded
    ((tag, content),) = encoded.items()
    if tag == "float":
        return float(content)
    if tag == "complex":
        return complex(float(content[0]), float(content[1]))
    if tag == "tuple":
        return tuple(value_of(x, witnesses) for x in content)
    if tag == "size":
        return formula_of(content, witnesses)
    assert tag in ("dict", "graph")
    return content if tag == "graph" else {k: value_of(x, witnesses) for k, x in content.items()}


def formula_of(formula: Any, witnesses: Sequence[Any]) -> Any:
    if not isinstance(formula, list):
        return value_of(formula)
    kind, *rest = formula
    if kind == "size":
        return witnesses[rest[0]].shape[rest[1]]
    if kind == "value":
        return int(plain(witnesses[rest[0]]))
    return FORMULAS[kind](*(formula_of(part, witnesses) for part in rest))


# -- files -----------------------------------------------------------------------------------------


def kind_of(array: Any) -> str:
    return f"{array.dtype.name}[{', '.join(map(str, array.shape))}]"


def little_endian(array: Any) -> bytes:
    return bytes(array.astype(array.dtype.newbyteorder("<")).tobytes(order="C"))


def digest(path: str, held: Any) -> bytes:
    """Section 2."""
    text = isinstance(held, bytes)
    kind = f"text[{len(held)}]" if text else kind_of(np.asarray(held))
    data = held if text else little_endian(np.asarray(held))
    parts = [xxh3_128_digest(data[i : i + 2**24]) for i in range(0, len(data), 2**24)]
    return bytes(xxh3_128_digest(f"{path} {kind}\n".encode() + b"".join(parts)))


def digest_of_format_1(held: Any) -> str:
    """Section 11."""
    if not isinstance(held, bytes):
        array = np.asarray(held)
        held = kind_of(array).encode() + little_endian(array)
    return hashlib.sha256(held).hexdigest()


def spread(array: Any, elements: Any = "spread") -> Any:
    """Return the elements that a file holds of a value (section 8)."""
    size, flat = array.size, array.reshape(-1)
    if elements is None:
        return array if size <= 16384 else flat[:: -(-size // 16384)]
    count = min(max(256, size // 64), 16384)
    if size <= count:
        return array
    step = -(-46368 * size // 75025)
    while math.gcd(step, size) != 1:
        step += 1
    return flat[np.arange(count) * step % size]


def weights(like: Any, i: int) -> Any:
    return np.cos(np.arange(like.size) + 1.0 + i).reshape(like.shape).astype(like.dtype)


class Reader:
    """Section by section of the page."""

    def __init__(self, path: Path) -> None:
        self.file = h5py.File(path)
        assert self.file.attrs["format"] == b"gradtape"
        self.manifest = json.loads(self.file["manifest"][()])
        self.check_digests(int(self.file.attrs["format_version"].split(b".")[0]))
        self.variables = [box(self.array(r)) for r in self.manifest["variables"]]
        self.rules = [self.json(r["dataset"]) for r in self.manifest.get("rules", [])]

    def json(self, path: str) -> Any:
        return json.loads(self.file[path][()])

    def array(self, record: Any) -> Any:
        held = np.asarray(self.file[record["dataset"]][()])
        assert (list(held.shape), held.dtype) == (record["shape"], record["dtype"])
        return held

    def check_digests(self, major: int) -> None:
        found: dict[str, Any] = {}
        self.file.visititems(
            lambda name, x: found.update({f"/{name}": x[()]} if isinstance(x, h5py.Dataset) else {})
        )
        if major == 1:
            own = digest_of_format_1(found.pop("/manifest"))
            assert own == self.file.attrs["manifest_sha256"].decode()
            assert {k: digest_of_format_1(x) for k, x in found.items()} == self.manifest["digests"]
            return
        table = found.pop("/digests")
        assert [bytes(row) for row in table] == [digest(k, found[k]) for k in sorted(found)]
        assert self.file.attrs["digest"].decode() == digest("/digests", table).hex()

    # -- modules (section 5) -----------------------------------------------------------------------

    def modules(self) -> list[dict[str, Any]]:
        """Return the attributes of each module, those beside the constructor's included."""
        made: list[dict[str, Any]] = [{} for _ in self.manifest["modules"]]
        containers: list[Any] = []
        for attributes, record in zip(made, self.manifest["modules"], strict=True):
            for part in ("attributes", "extra"):
                for name, x in record.get(part, {}).items():
                    attributes[name] = self.attribute(x, made, containers)
        return made

    def attribute(self, encoded: Any, made: list[Any], containers: list[Any]) -> Any:
        def of(x: Any) -> Any:
            return self.attribute(x, made, containers)

        if encoded is None:
            return None
        ((tag, content),) = encoded.items()
        if tag in ("list", "dict", "items"):
            new: Any = [] if tag == "list" else {}
            containers.append(new)
            if tag == "list":
                new.extend(map(of, content))
            else:
                pairs = content.items() if tag == "dict" else content
                new.update((value_of(key), of(item)) for key, item in pairs)
            return new
        return {
            "value": value_of,
            "variable": lambda n: self.variables[n],
            "module": lambda n: made[n],
            "tuple": lambda xs: tuple(map(of, xs)),
            "set": lambda xs: set(map(of, xs)),
            "frozenset": lambda xs: frozenset(map(of, xs)),
            "same": lambda n: containers[n],
            "array": lambda path: self.file[path][()],
            "tensor": lambda path: box(self.file[path][()]),
            "scalar": lambda pair: np.dtype(pair[0]).type(value_of(pair[1])),
            "dtype": np.dtype,
            "range": lambda parts: range(*map(value_of, parts)),
            "slice": lambda parts: slice(*map(value_of, parts)),
            "bytes": bytes.fromhex,
            "op": lambda name: OPS[name],
        }[tag](content)

    # -- functions and graphs (sections 4, 6 and 7) ------------------------------------------------

    def trace(self, name: str) -> tuple[Any, Any]:
        """Return the first trace of a function of the root, and its record."""
        number = self.manifest["modules"][0]["functions"][name]
        record = self.manifest["functions"][number]["traces"][0]
        return self.json(record["dataset"]), record

    def takes(self, trace: Any, inputs: list[Any]) -> bool:
        """Return whether a trace is for these tensors."""
        named: dict[str, int] = {}
        for spec, x in zip(trace["graph"]["inputs"], inputs, strict=True):
            if not fits(spec, x):
                return False
            for name, n in zip(spec.get("names", []), x.shape, strict=False):
                if name and named.setdefault(name, n) != n:
                    return False
        return True

    def run(self, graph: Any, inputs: Sequence[Any]) -> tuple[list[Any], dict[int, Any]]:
        """Return a graph's outputs, and what it assigns to variables."""
        values = [x if isinstance(x, Box) else box(x) for x in inputs]
        assert all(map(fits, graph["inputs"], values))
        values += [box(self.array(c)) for c in graph["constants"]]
        for node in graph["nodes"]:
            xs = [
                value_of(x["scalar"]) if isinstance(x, dict) else values[x] for x in node["inputs"]
            ]
            if "read" in node:
                values.append(self.variables[node["read"]])
            elif "written" in node:
                values.append(xs[0])
            elif "custom_gradient" in node:
                ys = [box(x) for x in xs[: node["results"]]]
                TAPE.append((self.through(node), xs, ys))
                values += ys
            else:
                values += self.op(node, xs)
        return [values[i] for i in graph["outputs"]], {n: values[i] for n, i in graph["updates"]}

    def outputs(self, graph: Any, inputs: Sequence[Any]) -> list[Any]:
        """Return a graph's outputs as plain arrays."""
        return list(map(plain, self.run(graph, inputs)[0]))

    def op(self, node: Any, xs: list[Any]) -> list[Any]:
        count = len(xs) - node.get("witnesses", 0)
        params = {k: value_of(x, xs[count:]) for k, x in node["params"].items()}
        if node["op"] in OF_GRAPHS:
            run = lambda graph, xs: self.run(graph, xs)[0]  # noqa: E731
            ys = OPS[node["op"]](*xs[:count], **params, run=run, pull=pull)
        else:
            ys = op(node["op"], *xs[:count], **params)
        assert all(map(fits, node["outputs"], ys))
        if "rule" in node:
            ys = [box(y) for y in ys]
            TAPE[-1] = (self.by_rule(node, params), xs[:count], ys)
        return list(ys)

    def through(self, node: Any) -> Callable[..., Any]:
        """Return what goes back through a custom gradient."""
        r, a = node["results"], node["arguments"]
        rule, shared = node["backward"], isinstance(node["backward"], int)
        record = self.rules[rule] if shared else {"graph": rule, "gradients": []}
        assert not any(node["connected"][place] for place in node.get("lost", []))

        def back(gs: Any, xs: Any, ys: Any) -> Any:
            grads = self.run(record["graph"], [*xs[r + a :], *gs])[0]
            assert not shared or all(map(fits, record["gradients"], grads))
            found = iter(grads)
            return [*[None] * r, *(next(found) if c else None for c in node["connected"])]

        return back

    def by_rule(self, node: Any, params: Any) -> Callable[..., Any]:
        """Return what goes back through an op with a gradient rule of the file."""
        rule = self.rules[node["rule"]]
        assert rule["op"] == node["op"]
        assert {k: value_of(x) for k, x in rule["params"].items()} == params

        def back(gs: Any, xs: Any, ys: Any) -> Any:
            given = [x for x in xs if isinstance(x, np.ndarray)]
            found = iter(self.run(rule["graph"], [*given, *ys, *gs])[0])
            return [next(found) if c else None for c in rule["connected"]]

        return back

    # -- golden vectors (section 8) ----------------------------------------------------------------

    def case(self, case: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return a golden case's inputs, and its values by name."""
        position: dict[str, int] = {}
        arrays = []
        for spec in (*case["inputs"], *case["values"]):
            flat = self.file[f"{case['case']}/{spec['dtype']}"][()]
            start = position.get(spec["dtype"], 0)
            size = math.prod(spec["shape"])
            arrays.append(flat[start : start + size].reshape(spec["shape"]))
            position[spec["dtype"]] = start + size
        count = len(case["inputs"])
        names = [spec["name"] for spec in case["values"]]
        return arrays[:count], dict(zip(names, arrays[count:], strict=True))

    def computed(self, graph: Any, inputs: list[Any], wanted: Sequence[str]) -> dict[str, Any]:
        """Return those values of a case that have these names, whole."""
        TAPE.clear()
        given = [box(x) for x in inputs]
        places = {r["dataset"]: i for i, r in enumerate(self.manifest["variables"])}

        def source(name: str) -> Any:
            kind, label = name.partition("gradient of ")[2].split(" ", 1)
            if kind == "input":
                return given[int(label)]
            inside = f"/variables/{label}"
            return self.variables[places[inside if inside in places else f"/{label}"]]

        outputs, _ = self.run(graph, given)
        found = {f"output {i}": y for i, y in enumerate(outputs)}
        ys = outputs
        for kind in ("gradient of ", "second gradient of "):
            names = [name for name in wanted if name.startswith(kind)]
            weighed = [(y, weights(y, i)) for i, y in enumerate(ys) if floating(y)]
            targets, seeds = zip(*weighed, strict=True) if weighed else ((), ())
            ys = gradients(targets, seeds, [source(name) for name in names])
            found |= dict(zip(names, ys, strict=True))
        return {name: plain(x) for name, x in found.items()}


def fits(spec: Any, x: Any) -> bool:
    """Return whether an array is one of a spec."""
    shape = x.shape if spec["shape"] is None else spec["shape"]
    return (
        x.dtype == spec["dtype"]
        and len(shape) == x.ndim
        and all(size in (None, n) for size, n in zip(shape, x.shape, strict=True))
    )
