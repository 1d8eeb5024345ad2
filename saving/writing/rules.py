"""Gradient rules that nodes refer to by number, as graphs next to the functions that use them.

These are rules of custom gradients that call their own functions, and rules of ops that a reader
would not have.

By default, an op in a file has the gradient rule of the op's owner. If this process registered
another one, it goes into the file. Every rule that uses such an op does so too, because it matters
from the second order on: ``sin``'s rule is written with ``cos`` and ``multiply``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.extend import (
    Graph,
    Node,
    Op,
    SharedRule,
    StoredRule,
    Symbol,
    is_differentiable,
    line_of,
    nodes_within,
    registry,
    trace_rule,
)
from ..errors import SaveError, UntraceableGradient
from ..records.schema import MAX_RULES

#: Instead of the number of a rule: the op has the one that its owner gives it.
DEFAULT = -1
# Gradients of how many orders a file keeps where rules use other inputs at each order.
_ORDERS = 4
# How far rules of rules are followed to see whether they use an op with another rule.
_FAR = 8
# Backward passes and loops apply these themselves, in addition to the rules.
_OF_PASSES = frozenset({"add", "identity", "stack", "unbroadcast_like", "unstack", "zeros_like"})


class _Entry:
    """The rule of an op for inputs of one kind."""

    def __init__(self, key: Any, node: Node, stored: StoredRule | None, elsewhere: str) -> None:
        self.key = key
        self.name = node.op.name
        self.stored = stored
        self.elsewhere = elsewhere  # who replaced it
        graph = None if stored is None else stored.graph
        self.nodes = [] if graph is None else [*op_nodes(graph)]
        self.number: int | None = None


class KeptRules:
    """The gradient rules that go into a file.

    Parameters
    ----------
    keep
        Whether to store rules; without them, functions have no gradients through such ops.
    """

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        known = registry()
        self.active = not all(
            op.has_own_forward_rule and not known.rules.from_elsewhere(op)
            for op in known.ops.values()
        )
        self._entries: dict[Any, _Entry] = {}
        self._differs: dict[Any, bool] = {}
        self._kept: list[tuple[StoredRule | SharedRule, str]] = []
        self._shared: dict[SharedRule, int] = {}
        self._order = 1

    def number(self, node: Node, where: str) -> int | None:
        """Return the number of the rule that a node has in the file.

        Returns
        -------
        int or None
            ``DEFAULT`` for a node with the rule that every reader has; None if the rule is not
            kept.

        Raises
        ------
        SaveError
            If the rule cannot be stored.
        """
        if not self.differs(node, where):
            return DEFAULT
        entry = self._entries[_key(node)]
        stored = entry.stored
        if not self._keep or stored is None or stored.graph is None:
            return None
        if node.witnesses:
            raise SaveError(
                f"{where}: the gradient of op {entry.name!r} uses a rule that was replaced here, "
                "and its parameters are computed from sizes: such a rule cannot be stored. Give "
                "the sizes in an input_signature, or write a gradtape.custom_gradient"
            )
        if entry.number is None and self._order <= _ORDERS:
            entry.number = self._keep_one(stored, f"the gradient rule of op {entry.name!r}", where)
        return entry.number

    def number_of_shared(self, rule: SharedRule, where: str) -> int:
        """Return the number of a rule that custom gradients share.

        Raises
        ------
        SaveError
            If there are too many rules.
        """
        if rule not in self._shared:
            label = f"the gradient of {rule.label!r}"
            self._shared[rule] = self._keep_one(rule, label, where)
        return self._shared[rule]

    def _keep_one(self, rule: StoredRule | SharedRule, label: str, where: str) -> int:
        number = len(self._kept)
        self._kept.append((rule, label))
        if number >= MAX_RULES:
            raise SaveError(
                f"{where}: its gradients use more than {MAX_RULES:,} rules that were replaced "
                "here or that call their own functions, which readers refuse"
            )
        return number

    def kept(self) -> Iterator[tuple[StoredRule | SharedRule, str]]:
        """Yield the rules by number, each with a name for messages; writing one may add more."""
        done = 0
        while done < len(self._kept):
            self._order += 1
            level = self._kept[done:]
            done = len(self._kept)
            yield from level

    def differs(self, node: Node, where: str) -> bool:
        """Return whether a node's gradients, of any order, differ from those of a reader.

        Raises
        ------
        SaveError
            If they do and the rule cannot be stored.
        """
        op = node.op
        if not isinstance(op, Op) or not (self.active or op.stored is not None):
            return False
        first = self._explored(node, where)
        if first is None:
            return False
        known = self._differs.get(first.key)
        if known is None:
            known = self._differs[first.key] = self._uses_another(first, where)
        return known

    def _uses_another(self, first: _Entry, where: str) -> bool:
        seen = {first.key: first}
        level = [first]
        for _ in range(_FAR):
            if any(x.elsewhere for x in level):
                return True
            found: dict[Any, _Entry] = {}
            for entry in level:
                for node in entry.nodes:
                    used = self._explored(node, where)
                    if used is None or used.key in seen or self._differs.get(used.key) is False:
                        continue
                    found[used.key] = used
            seen |= found
            level = list(found.values())
            if not level:
                self._differs.update(dict.fromkeys(seen, False))
                return False
        # endless rules, of x**3, x**2, x**1, x**0 ..., differ only in numbers
        alike = {_but_for_numbers(key) for key in seen.keys() - {x.key for x in level}}
        return any(x.elsewhere or _but_for_numbers(x.key) not in alike for x in level)

    def _explored(self, node: Node, where: str) -> _Entry | None:
        """Return what is known about a node's rule; None if no gradient passes the node."""
        op = node.op
        assert isinstance(op, Op)
        given = node.inputs[: len(node.inputs) - node.witnesses]
        followed = any(type(x) is Symbol and is_differentiable(x.dtype) for x in given)
        if not followed or not any(is_differentiable(y.dtype) for y in node.outputs):
            return None
        elsewhere = self._elsewhere(op, bool(node.graphs), where)
        if node.graphs and not elsewhere:  # what they hold is looked at by itself
            return None
        key = _key(node)
        entry = self._entries.get(key)
        if entry is None:
            stored = op.stored or self._traced(node, elsewhere, where)
            entry = self._entries[key] = _Entry(key, node, stored, elsewhere)
        return entry

    def _elsewhere(self, op: Op, runs_graphs: bool, where: str) -> str:
        """Return who replaced a rule of an op; refuse replacements that no file can hold."""
        if op.stored is not None:
            return "the file that it comes from"
        elsewhere = registry().rules.from_elsewhere(op)
        reason = ""
        if not op.has_own_forward_rule:
            elsewhere = f"the module {getattr(op.jvp, '__module__', '?')!r} (register_jvp)"
            reason = "files hold no forward rules"
        elif elsewhere and runs_graphs:
            reason = "the op runs graphs"
        elif elsewhere and op.name in _OF_PASSES:
            reason = "backward passes and loops use the op by themselves"
        if reason and self._keep:
            raise SaveError(
                f"{where}: the gradient rule of op {op.name!r} was replaced by {elsewhere}, and "
                f"the new one cannot be stored ({reason}). Use a gradtape.custom_gradient instead, "
                "or save with custom_gradients=False, without gradients through the op"
            )
        return elsewhere

    def _traced(self, node: Node, elsewhere: str, where: str) -> StoredRule | None:
        if node.graphs:
            return None
        try:
            return trace_rule(node)
        except Exception as error:
            if not elsewhere or not self._keep:
                return None  # a rule that is not written in ops uses none
            raise UntraceableGradient(
                f"{where}: op {node.op.name!r} has a gradient rule of {elsewhere}, which cannot be "
                f"traced for the file: {str(error).rstrip('.')} ({line_of(error)}). "
                "Write it with gradtape ops, or save with custom_gradients=False, without "
                "gradients through the op"
            ) from error


def op_nodes(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph that are ops, those of graphs inside it too."""
    return (node for node in nodes_within(graph) if isinstance(node.op, Op))


def _key(node: Node) -> tuple[Any, ...]:
    op = node.op
    assert isinstance(op, Op)
    if op.stored is not None:
        return (id(op.stored),)
    names: dict[str, int] = {}

    def spec(x: Any) -> Any:
        if type(x) is not Symbol:
            return type(x).__name__, repr(x)
        if x.shape is None:
            return None, x.dtype
        # equal sizes by their first place
        sizes = tuple(
            n if type(n) is int else (names.setdefault(n.key, len(names)),) for n in x.shape
        )
        return sizes, x.dtype

    arrays = tuple(map(spec, (*node.inputs, *node.outputs)))
    return op.name, arrays, repr(sorted(node.params.items())), node.witnesses


def _but_for_numbers(key: tuple[Any, ...]) -> Any:
    if len(key) == 1:
        return key
    name, arrays, *rest = key
    return name, tuple(x[0] if type(x[0]) is str else x for x in arrays), *rest
