"""What a function with a custom gradient uses: its arguments, variables and captured tensors."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ..base.array_types import next_id
from ..base.context import active_graph, training_mode
from ..base.dtypes import computing, is_differentiable
from ..base.observers import Recorder
from ..base.tree import flatten, pack_like, structure
from ..tensors.convert import as_tensor
from ..tensors.op import Op
from ..tensors.tensor import Tensor
from ..tensors.value_holder import ValueHolder
from ..tensors.variable import Variable
from .arguments import key_of, name_of


class Parameters:
    """Binds arguments to a function's parameters.

    Parameters
    ----------
    f
        The function.
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self._signatures: list[inspect.Signature] = []
        #: How many positional arguments a call without keywords must have to need no binding.
        self._enough = 0.0
        self._optional: list[bool] = []  # which positional parameters have a default
        try:
            self._signatures.append(inspect.signature(f))
            self._signatures.append(inspect.signature(f, follow_wrapped=False))
        except (TypeError, ValueError):  # for example of a built-in function
            return
        parameters = self._signatures[0].parameters.values()
        if any(x.kind is x.KEYWORD_ONLY for x in parameters):
            self._enough = float("inf")
        self._optional = [x.default is not x.empty for x in parameters if x.kind in _POSITIONAL]
        self._enough += len(self._optional)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """Return the arguments of a call in the order of the parameters.

        Raises
        ------
        TypeError
            If they do not fit.
        """
        if not kwargs and len(args) >= self._enough:
            return Arguments(args, {}, optional=self._optional)
        refused: TypeError | None = None
        for signature in self._signatures:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                refused = refused or error
                continue
            given = set(bound.arguments)
            bound.apply_defaults()
            return Arguments(bound.args, bound.kwargs, *_defaults(bound, given), len(args))
        if refused is not None:
            raise TypeError(f"custom_gradient: {name_of(self.f)}: {refused}") from None
        return Arguments(args, kwargs)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _defaults(bound: inspect.BoundArguments, given: set[str]) -> tuple[list[bool], list[bool]]:
    """Return for each argument, in order, whether it is a default, and whether it has one."""
    defaults: list[bool] = []
    optional: list[bool] = []
    for name, x in bound.signature.parameters.items():
        many = x.kind in (x.VAR_POSITIONAL, x.VAR_KEYWORD)
        count = len(bound.arguments[name]) if many else 1
        defaults += [name not in given] * count
        optional += [x.default is not x.empty] * count
    return defaults, optional


class Arguments:
    """The arguments of a call, in the order of the function's parameters.

    Parameters
    ----------
    args, kwargs
        Arguments to call the function with: those by keyword that cannot be positional are last.
    defaults, optional
        For each argument, whether it is a default, and whether its parameter has one.
    positional
        How many of ``args`` the call passes by position; by default, all.

    Attributes
    ----------
    args, kwargs
        The same; arrays and variables have become tensors.
    leaves
        Their leaves.
    layout
        What is known of them without their values.
    variables
        The ids of variables among them.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        defaults: Sequence[bool] = (),
        optional: Sequence[bool] = (),
        positional: int | None = None,
    ) -> None:
        self._tree: tuple[Any, ...] = args
        self._names: tuple[str, ...] = ()
        self.variables: Collection[int] = ()
        if not kwargs and not defaults and not any(type(x) is not Tensor for x in args):
            self.leaves: list[Any] = list(args)
            self.layout = _of_tensors(len(args))
            self.args, self.kwargs = args, kwargs
            return
        self._tree, self._names = (*args, *kwargs.values()), tuple(kwargs)
        leaves = [flatten(value) for value in self._tree]
        counts = list(map(len, leaves))
        given = _spread([not x for x in defaults] or [True] * len(leaves), counts)
        self.leaves = [
            as_argument(leaf) if known else leaf
            for leaf, known in zip(itertools.chain(*leaves), given, strict=True)
        ]
        self.variables = {x.id for x in itertools.chain(*leaves) if isinstance(x, Variable)}
        many = len(leaves) - len(optional)
        self.layout = ArgumentLayout(
            [type(leaf) for leaf in self.leaves],
            given,
            _spread([*optional, *[False] * many], counts),
            _spread([i >= len(args) for i in range(len(leaves))], counts),
            sum(counts[: len(args) if positional is None else positional]),
        )
        self._pack()

    def _pack(self) -> None:
        values = pack_like(self._tree, self.leaves)
        count = len(values) - len(self._names)
        self.args = values[:count]
        self.kwargs = dict(zip(self._names, values[count:], strict=True))

    def with_tensors(self, tensors: Sequence[Tensor]) -> Arguments:
        """Return the same arguments with other tensors."""
        twin: Arguments = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        twin.leaves = list(self.leaves)
        for place, x in zip(self.layout.tensors, tensors, strict=True):
            twin.leaves[place] = x
        twin._pack()
        return twin

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors that the call passes."""
        return [self.leaves[i] for i in self.layout.tensors]

    @property
    def key(self) -> Any:
        """A key of all but the tensors, and of what else decides what the function does."""
        mode, tensors = training_mode.get(), self.layout.tensors
        static = tuple("" if i in tensors else key_of(leaf) for i, leaf in enumerate(self.leaves))
        around = None if mode is None else key_of(mode.training), computing.get()
        return self._names, repr(structure(self._tree)), static, around


def _spread(flags: Sequence[bool], counts: Sequence[int]) -> list[bool]:
    """Return each argument's flag once for each of its leaves."""
    return [flag for flag, count in zip(flags, counts, strict=False) for _ in range(count)]


class ArgumentLayout:
    """The kinds of arguments, from which the argument of each returned gradient follows.

    Parameters
    ----------
    kinds
        The type of each leaf.
    given
        For each leaf, whether the call has it; otherwise, it is a default, and a constant.
    optional
        For each leaf, whether its parameter has a default.
    named
        For each leaf, whether it can be passed by keyword only.
    positional
        The number of leaves that the call passes by position; they come first.

    Attributes
    ----------
    tensors
        The places of tensors that the call passes.
    count
        The number of arguments that it passes.
    may_leave_out
        Whether a rule may return no gradient for some of the tensors.
    """

    def __init__(
        self,
        kinds: Sequence[type],
        given: Sequence[bool],
        optional: Sequence[bool],
        named: Sequence[bool],
        positional: int,
    ) -> None:
        self._kinds, self._optional, self._named = kinds, optional, named
        self._positional = positional
        self.tensors = [i for i, kind in enumerate(kinds) if kind is Tensor and given[i]]
        self.count = sum(given)
        self.may_leave_out = any(i >= positional or named[i] for i in self.tensors)

    def places(self, count: int) -> Sequence[int] | None:
        """Return the places of arguments that a number of gradients is for.

        A rule may leave out arguments that are keyword-only, values that have no gradient, and
        numbers for parameters that have a default. It returns gradients for the others in order.
        If that does not fit, it is for the arguments that the call passes by position.
        """
        every = range(len(self._kinds))
        if len(every) == count:
            return every
        needed = [i for i in every if i in self.tensors or not self._optional[i]]
        parts = [[i for i in x if not self._named[i]] for x in (every, needed)]
        whole = [[*every], parts[0], needed, parts[1]]
        numeric = [[i for i in x if self._kinds[i] in (Tensor, float, complex)] for x in whole]
        choices = [*whole, *numeric, [*range(self._positional)]]
        return next((part for part in choices if len(part) == count), None)


@functools.lru_cache(100)
def _of_tensors(count: int) -> ArgumentLayout:
    """Return the layout of positional arguments that are all tensors."""
    return ArgumentLayout([Tensor] * count, [True] * count, [False] * count, [False] * count, count)


def as_argument(leaf: Any) -> Any:
    """Return an argument as a tensor, unless it is a Python value."""
    if isinstance(leaf, (Tensor, ValueHolder, np.ndarray, np.generic)):
        return as_tensor(leaf)
    return leaf


class Uses(Recorder):
    """Notes what a function uses besides its arguments, and records nothing.

    Parameters
    ----------
    arguments
        The tensors that it receives.
    recorders
        The recorders around it: a captured tensor matters if one of them follows it. In a trace,
        each one matters, because a tape may follow it in a later run.

    Attributes
    ----------
    variables
        The trainable variables that it reads, by id.
    """

    def __init__(self, arguments: Sequence[Tensor], recorders: Sequence[Recorder]) -> None:
        self.variables: dict[int, Variable] = {}
        self._recorders = recorders
        traced = active_graph.get() is not None
        self.records: dict[int, Any] = {}
        if recorders or traced:
            self.records = _Outside({x.id for x in arguments}, () if traced else recorders)

    def accessed(self, variable: Variable, read: Tensor) -> None:
        if variable.trainable:
            self.variables.setdefault(variable.id, variable)
        elif type(self.records) is _Outside and any(
            variable.id in recorder.records for recorder in self._recorders
        ):
            handle = variable.handle()
            self.records[read.id] = {handle.id: handle}

    def accessed_by_rule(self, variable: Variable, read: Tensor) -> None:
        """Ignore what the function's result does not depend on."""

    def record(
        self, op: Op, inputs: tuple[Any, ...], output: Tensor, params: dict[str, Any]
    ) -> None:
        rules = op.rules
        passing = inputs if rules is None else [x for x, r in zip(inputs, rules) if r is not None]
        self._pass(passing, [output])

    def record_joint(
        self, op: Op, inputs: tuple[Any, ...], outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        self._pass(inputs, outputs)

    def record_call(
        self, name: str, inputs: list[Tensor], outputs: list[Tensor], backward: Any
    ) -> None:
        self._pass(inputs, outputs)

    def _pass(self, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        found = self._captured(inputs)
        if found:
            self.records.update({y.id: found for y in outputs if is_differentiable(y.dtype)})

    def _captured(self, tensors: Sequence[Any]) -> dict[int, Tensor]:
        found: dict[int, Tensor] = {}
        for x in tensors:
            # a tensor with a variable's id is the variable, which is no captured tensor
            if type(x) is not Tensor or x.id in self.variables:
                continue
            if x.id in self.records and is_differentiable(x.dtype):
                found |= self.records.get(x.id, {x.id: x})
        return found

    def captured(self, results: Sequence[Tensor]) -> list[Tensor]:
        """Return the captured tensors through which gradients of results would pass."""
        return list(self._captured(results).values())


_contains = dict.__contains__


class _Outside(dict[int, Any]):
    """For tensors computed from captured ones, these; it also contains the captured ones."""

    def __init__(self, arguments: set[int], recorders: Sequence[Recorder]) -> None:
        super().__init__()
        self._arguments = arguments
        self._recorders = recorders
        self._first = next_id()  # tensors from outside have smaller ids

    def __contains__(self, id: Any) -> bool:
        if id >= self._first:
            return _contains(self, id)
        if id in self._arguments or id <= 0:
            return False
        return not self._recorders or any(id in recorder.records for recorder in self._recorders)
