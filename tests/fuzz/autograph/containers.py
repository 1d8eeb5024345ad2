"""Kinds of state: lists, dicts, sets, arrays and other containers."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CONTAINERS", "State"]


@dataclass(frozen=True)
class State:
    """A kind of state of a program.

    In the texts, ``{v}`` is a number, ``{t}`` a test, ``{i}`` a small integer and ``{n}`` the name
    of a variable that is a tensor.

    Parameters
    ----------
    made
        The lines that make it.
    changes
        Statements that change it. Lines of one statement are separated by ``\\n``.
    reads
        Expressions that are numbers. They may change it.
    told
        Expressions that a program returns.
    """

    made: tuple[str, ...]
    changes: tuple[str, ...]
    reads: tuple[str, ...]
    told: tuple[str, ...] = field(default=())


CONTAINERS = {
    "list": State(
        ("l = [a, b, 0.5]",),
        (
            "l[0] = {v}",
            "l[-1] = {v}",
            "l[{i}] = {v}",
            "l.append({v})",
            "l += [{v}]",
            "l.extend([{v}, 1.0])",
            "l.insert(0, {v})",
            "l[:1] = [{v}]",
            "l[1:] = [{v}, 2.0]",
            "l[0] += {v}",
            "l[0], l[-1] = l[-1], l[0]",
            "l.reverse()",
            "l.pop() if len(l) > 1 else None",
            "if len(l) > 1:\n    del l[0]",
            "l = [*l, {v}]",
            "l = l + [{v}]",
            "l = [q for q in l if q > 0.0] + [1.0]",
            "l = [q * 2.0 if q > 0.0 else q for q in l]",
            "l.sort(key=lambda q: -q)",
            "l.remove(l[0])\nl.append({v})",
            "list.append(l, {v})",
            "operator.setitem(l, 0, {v})",
            "[l.append(q) for q in (1.0, {v})]",
            "for l[0] in (0.5, {v}):\n    pass",
            "(a, l[0]) = (l[0], a)",
            "k2 = l\nk2.append({v})",
            "l = l[::-1]",
            "l.clear()\nl.append({v})",
            "put(l, {v})",
            "put_if(l, {v})",
            "put_first(l, {v})",
            "recur(2, l, {v})",
            "recur_if(2, l, {v})",
            "matched({i}, l, {v})",
            "walrus(l, {v})",
            "list(map(l.append, [{v}, 0.5]))",
        ),
        (
            "l[0]",
            "l[-1]",
            "sum(l)",
            "max(l)",
            "len(l) * 0.5",
            "l[{i} % len(l)]",
            "put(l, {v})",
            "put_deep(l, {v})",
            "(l.pop() if len(l) > 2 else 0.5)",
            "first_above(l, {v})",
            "counted_above(l, {v})",
            "drained(l[:], {v})",
            "sum(q for q in l if q > 0.0)",
            "sum(of(l))",
            "sorted(l)[0]",
            "sorted(l, key=lambda q: -q)[0]",
            "min(l, key=lambda q: q * q)",
            "functools.reduce(lambda q, r: q + r, l)",
            "sum(map(lambda q: q * 2.0, l))",
            "sum(filter(lambda q: q > 0.1, l))",
            "apply(put, l, {v})",
            "functools.partial(put, l)({v})",
            "(lambda q: put(l, q))({v})",
            "(l[0] if {t} else put(l, {v}))",
        ),
        ("l",),
    ),
    "put": State(
        ("m = [a]", "add = m.append"),
        ("add({v})", "apply(add, {v})", "m[0] = {v}", "add({v}) or add(1.0)"),
        ("m[-1]", "sum(m)", "len(m) * 0.5"),
        ("m",),
    ),
    "dict": State(
        ('d = {{"k": a, "n": 1.0}}',),
        (
            'd["k"] = {v}',
            'd["new"] = {v}',
            'd["k"] += {v}',
            'd["k"] = d["n"] * {v}',
            "d.update(k={v})",
            'd.update({{"z": {v}}})',
            'd.setdefault("z", {v})',
            'd.pop("n", None)\nd["n"] = {v}',
            'd.pop("z", None)',
            'if "z" in d:\n    del d["z"]',
            'd |= {{"k": {v}}}',
            'd = {{**d, "k": {v}}}',
            "d = {{q: r * 2.0 for q, r in d.items()}}",
            'keep(d, "k", {v})',
            'keep(d, "z", {v})',
            "for q in d:\n    d[q] = {v}",
            "for q, r in d.items():\n    a = gt.tanh(a + r)",
            'd[f"k{i}"] = {v}',
            "d[{i}] = {v}",
            "d.clear()\nd.update(k={v}, n=0.5)",
        ),
        (
            'd["k"]',
            'd["n"]',
            'd.get("z", 0.0)',
            'd.get("new", 0.25)',
            "len(d) * 0.5",
            "sum(d.values())",
            '("z" in d) * 1.0',
            'keep(d, "k", {v})',
            'd.setdefault("y", {v})',
            'd.pop("z", 0.5)',
        ),
        ("d",),
    ),
    "set": State(
        ("s = {{1.0, 2.0}}",),
        (
            "s.add(3.0)",
            "s.discard(1.0)",
            "s |= {{4.0}}",
            "s.add({i})",
            "s = s | {{5.0}}",
            "s.clear()",
        ),
        ("len(s) * 0.5", "sum(s)", "(3.0 in s) * 1.0", "(1.0 not in s) * 0.5"),
        ("sorted(s)",),
    ),
    "nested": State(
        ('n = {{"rows": [a, b], "in": {{"v": 1.0}}}}', 'r = n["rows"]', "m2 = [[a], [b]]"),
        (
            'n["rows"][0] = {v}',
            'n["rows"].append({v})',
            'n["in"]["v"] = {v}',
            'n["in"]["w"] = {v}',
            "r.append({v})",
            "r[0] = {v}",
            'put(n["rows"], {v})',
            "m2[0].append({v})",
            "m2[{i} % 2][0] = {v}",
            "m2.append([{v}])",
            "for q in m2:\n    q.append({v})",
            "for q in m2:\n    q[0] = {v}",
            'n["rows"] = [{v}]',
            "m2[0] = m2[1]\nm2[0][0] = {v}",
        ),
        ('n["rows"][0]', 'sum(n["rows"])', 'n["in"]["v"]', "r[-1]", "m2[0][-1]", "m2[1][0]"),
        ("n", "m2", "r"),
    ),
    "numpy": State(
        ("w = np.zeros(3)", "u = w[:2]"),
        (
            "w[0] = 1.5",
            "w += 1.0",
            "w[1:] = 2.0",
            "np.copyto(w, 3.0)",
            "w.fill(2.0)",
            "np.add(w, 1.0, out=w)",
            "np.add(w, 1.0, w)",
            "u += 1.0",
            "u[0] = 2.5",
            "w = w + 1.0",
            "stamp(w, {i})",
            "stamp_all(w)",
            "w[0] = {v}",
            "w[0] += 1.0",
            "w.put(0, 1.0)",
            "np.put(w, 0, 7.0)",
            "w *= 2.0",
            "w[w < 1.0] = 5.0",
            "np.add.at(w, [0], 2.0)",
            "stamp_global()",
            "array[1] = 3.0",
            "w.setfield(1.0, 'f8')",
            "w.itemset(0, 2.0) if hasattr(w, 'itemset') else w.fill(1.0)",
        ),
        ("w[0]", "w.sum()", "u[1]", "stamp(w, 0)", "stamp_all(w)", "stamp_global()"),
        ("w.copy()", "array.copy()"),
    ),
    "containers": State(
        (
            "q0 = collections.deque([a, 1.0])",
            "dd = collections.defaultdict(list)",
            "ct = collections.Counter()",
            "od = collections.OrderedDict(k=a)",
            "txt = io.StringIO()",
            "ba = bytearray(2)",
        ),
        (
            "q0.append({v})",
            "q0.appendleft({v})",
            "q0.popleft() if len(q0) > 1 else None",
            "q0[0] = {v}",
            "q0.rotate()",
            'dd["k"].append({v})',
            'dd["z"]',
            'ct["k"] += 1',
            "ct.update('kz')",
            'od["k"] = {v}',
            'od["z"] = {v}',
            'od.move_to_end("k")',
            'txt.write("x")',
            "ba[0] = 3",
            "ba.append(1)",
        ),
        ("q0[0]", "len(q0) * 0.5", 'len(dd["k"]) * 0.5', 'ct["k"] * 0.5', 'od["k"]', "ba[0] * 0.5"),
        (
            "list(q0)",
            "dict(dd)",
            "dict(ct)",
            "list(od.items())",
            "len(txt.getvalue())",
            "list(ba)",
        ),
    ),
}
