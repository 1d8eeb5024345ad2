"""``while`` and ``for``: Python's own, or ``gt.while_loop`` and ``gt.scan`` in a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.extend import (
    Tensor,
    TensorSpec,
    active_graph,
    as_tensor,
    flatten,
    ops,
    pack_like,
    user_line,
    warn_user,
)
from ..plugins.ops.control.conditions import while_loop
from ..plugins.ops.control.scan import scan
from .choices import Restart, if_stmt
from .effects import raising_while
from .mutations import (
    MoreChanges,
    Watch,
    check_consumed,
    check_separate,
    mark_shared,
    shared_arrays,
)
from .overloads import LoopRows, rows_of
from .values import (
    Content,
    Form,
    MaybeAssigned,
    Undefined,
    check_integers,
    content_of,
    described,
    fits,
    in_dtype,
    is_number,
    is_traced,
    is_weak,
    living,
    quoted,
    same_form,
    same_python,
    truth,
    weakly,
    worded,
)

State = Callable[[], tuple[Any, ...]]
Setter = Callable[[tuple[Any, ...]], None]

# The most copies of its body that a Python loop may add to a trace, if a traced `break` ends it.
_MOST_COPIES = 256


class _Slot:
    """A variable that a loop carries: its containers and dtypes, and whether it has a value."""

    def __init__(self, name: str, start: Any, is_shared: bool = False) -> None:
        self.name = quoted(name)
        self.is_shared = is_shared
        self.start = content_of(start)
        self.plain = name
        self.form: Form | None = None
        self.dtypes: dict[int, Any] = {}
        self.maybe = isinstance(start, MaybeAssigned)
        self.always = False

    @property
    def tree(self) -> Any:
        """A value in the form that the variable has in each step."""
        if self.start.assigned is False and self.form is not None:
            return self.form.tree
        return self.start.value

    @property
    def carried(self) -> bool:
        """Whether the loop carries a value of this variable."""
        return self.start.assigned is not False or self.form is not None

    def first(self) -> list[Tensor]:
        """Return the tensors that the loop starts with."""
        if not self.carried:
            return []
        value = self.start.value
        if self.start.assigned is False and self.form is not None:
            value = self.form.value()
        return self._tensors(value, self.start.assigned)

    def _tensors(self, value: Any, assigned: Any) -> list[Tensor]:
        found = []
        for i, leaf in enumerate(flatten(value)):
            if is_number(leaf):
                dtype = self.dtypes.get(i)
                found.append(in_dtype(leaf, dtype))
        return [*found, as_tensor(assigned)] if self.maybe else found

    def taken(self, leaves: list[Tensor]) -> Any:
        """Return the variable in a step; remove the tensors that it consists of from ``leaves``."""
        if not self.carried:
            return self.start.given
        kept = []
        for i, x in enumerate(flatten(self.tree)):
            if is_number(x):
                tensor = leaves.pop(0)
                # a Python number's dtype is known after the first step
                tensor = weakly(tensor) if is_weak(x) and i not in self.dtypes else tensor
                kept.append(mark_shared(tensor) if self.is_shared else tensor)
            else:
                kept.append(x)
        value = pack_like(self.tree, kept)
        return MaybeAssigned(self.plain, value, leaves.pop(0)) if self.maybe else value

    def after(self, value: Any, before: Sequence[Tensor], what: str) -> list[Tensor]:
        """Return the tensors that the next step gets.

        Raises
        ------
        Again
            If the loop must be traced again with another start.
        TypeError, ValueError
            If the variable changes its form, dtype or Python value.
        """
        held = content_of(value)
        self.always = held.assigned is True
        if not self.carried:
            if held.assigned is False:
                return []
            if not self.plain.isidentifier():
                raise ValueError(
                    f"{user_line()}: {self.plain} has no value before the {what} but has one "
                    "after a step; assign it before the loop"
                )
            self.form, self.maybe = Form.of(held.value), True
            raise Restart
        if held.assigned is not True and not self.maybe:
            self.maybe = True
            raise Restart
        if held.assigned is False:
            return self._tensors(Form.of(self.tree).value(), False)
        same_form(self.name, self.tree, held.value, (f"before the {what}", "after a step"))
        self._check(held, before, what)
        return self._tensors(held.value, held.assigned)

    def _check(self, held: Content, before: Sequence[Tensor], what: str) -> None:
        rest = iter(before)
        for i, (old, new) in enumerate(zip(flatten(self.tree), held.leaves, strict=True)):
            if not is_number(old):
                if is_number(new) and hasattr(old, "as_memory"):
                    self._start_as_memory(i, old.as_memory(described(new)[0][1:]))
                    raise Restart
                if not same_python(old, new):
                    raise ValueError(
                        f"{user_line()}: {self.name} is {worded(old)} before the {what} but "
                        f"{worded(new)} after a step; in a trace, only tensors and numbers can "
                        "change from step to step"
                    )
                continue
            if not is_number(new):
                raise ValueError(
                    f"{user_line()}: {self.name} is a tensor before the {what} but {worded(new)} "
                    "after a step; keep it a tensor"
                )
            self._check_number(i, next(rest), new, old, what)

    def _start_as_memory(self, i: int, memory: Tensor) -> None:
        """Start an array of tensors as one tensor, because a step turns it into one."""
        leaves = flatten(self.start.value)
        leaves[i] = memory
        self.start = content_of(pack_like(self.start.value, leaves))

    def _check_number(self, i: int, was: Tensor, new: Any, old: Any, what: str) -> None:
        now = as_tensor(new)
        if was.dtype != now.dtype and not (is_weak(new) and fits(now.dtype, was.dtype, new)):
            weak = is_weak(old) and i not in self.dtypes
            if not (weak and fits(was.dtype, now.dtype, old)):
                raise TypeError(
                    f"{user_line()}: {self.name} is {was.dtype} before the {what} but "
                    f"{now.dtype} after a step; cast it with astype"
                )
            self.dtypes[i] = now.dtype
            raise Restart
        if None not in (was.shape, now.shape) and len(was.shape) != len(now.shape):
            raise ValueError(
                f"{user_line()}: {self.name} has shape {was.shape} before the {what} but "
                f"{now.shape} after a step; keep the number of its axes the same"
            )

    def result(self, leaves: list[Tensor], always_runs: bool) -> Any:
        """Return the variable after the loop; ``always_runs`` means that each run takes a step."""
        value = self.taken(leaves)
        if self.carried and self.start.assigned is not False:
            check_separate(self.plain, content_of(value).value, self.start.value)
        if isinstance(value, MaybeAssigned) and always_runs and self.always:
            return value.value
        return value


class _Loop:
    """A traced loop: the variables that it carries, and its step."""

    def __init__(
        self,
        what: str,
        get_state: State,
        set_state: Setter,
        names: Sequence[str],
        watch: Watch,
        ends: int,
        shared: frozenset[int],
    ) -> None:
        self.what, self.watch = what, watch
        self._get, self._set, self._count = get_state, set_state, len(names) - ends
        self._ended = [Undefined(name) for name in names[self._count :]]
        names = names[: self._count]
        self.start = living(get_state()[: self._count], names)
        named = enumerate(zip(names, self.start, strict=True))
        self.slots = [_Slot(name, x, i in shared) for i, (name, x) in named]
        self.sizes: list[int] = []  # the number of tensors of each slot

    def get(self) -> tuple[Any, ...]:
        """Return the values of the variables."""
        return (*self._get()[: self._count], *self.watch.get())

    def set(self, values: tuple[Any, ...]) -> None:
        """Assign values to the variables."""
        self._set((*values[: self._count], *self._ended))
        self.watch.set(values[self._count :])

    def _grow(self) -> None:
        """Carry what the watch found that a step changes besides the variables."""
        for name, value in [*zip(self.watch.names, self.watch.start, strict=True)][
            len(self.slots) - self._count :
        ]:
            self.slots.append(_Slot(name, value))
            self.start = (*self.start, value)

    def first(self) -> list[Tensor]:
        """Return the tensors that the loop starts with."""
        starts = [slot.first() for slot in self.slots]
        self.sizes = [len(start) for start in starts]
        return [x for start in starts for x in start] or [as_tensor(False)]

    def enter(self, leaves: Sequence[Tensor]) -> None:
        """Assign the values at the start of a step to the variables."""
        rest = list(leaves)
        self.set(tuple([slot.taken(rest) for slot in self.slots]))

    def step(self, leaves: Sequence[Tensor], run: Callable[[], None]) -> list[Tensor]:
        """Return the values after a step."""
        self.enter(leaves)
        taken = [flatten(content_of(x).value) for x in self.get()]
        with raising_while(f"a step of the {self.what} is traced"):
            run()
        self.watch.find()
        before, found, again = list(leaves), list[Tensor](), False
        for slot, value, size in zip(self.slots, self.get(), self.sizes, strict=True):
            try:
                found += slot.after(value, before[:size], self.what)
            except Restart:
                again = True
            del before[:size]
        if again:
            raise Restart
        check_integers([x for slot in taken for x in slot], f"the {self.what}")
        return found or before  # without variables: an op needs at least one result

    def run(self, attempt: Callable[[], Sequence[Tensor]], always_runs: Callable[[], bool]) -> None:
        """Trace the loop until the forms of its variables settle, then assign the results."""
        while True:
            try:
                found = list(attempt())
            except Restart:
                self.set(self.start)
                continue
            except MoreChanges:
                self._grow()
                self.set(self.start)
                continue
            except BaseException:
                self._set((*self.start[: self._count], *self._ended))
                raise
            break
        known = always_runs()
        self.set(tuple([slot.result(found, known) for slot in self.slots]))


def while_stmt(
    test: Callable[[], Any],
    body: Callable[[], None],
    get_state: State,
    set_state: Setter,
    names: Sequence[str],
    options: Mapping[str, Any],
) -> None:
    """Repeat a block while a test holds.

    Parameters
    ----------
    test, body
        The test and the block.
    get_state, set_state, names
        The variables that the block changes, as for an ``if``.
    options
        The arguments of ``set_loop_options``. Under ``ends``: how many of the variables, the last
        ones, end with the loop.
    """
    most, done = options.get("maximum_iterations"), 0
    while most is None or done < most:
        holds = test()
        if is_traced(holds):
            break
        if not holds:
            return
        body()
        done += 1
    else:
        return
    shared = shared_arrays(get_state)  # before others refer to them
    watch = Watch("while", (body, test), names, set_state)
    loop = _Loop("'while'", get_state, set_state, names, watch, options["ends"], shared)

    def attempt() -> Sequence[Tensor]:
        def extra_test(*leaves: Tensor) -> Tensor:
            loop.enter(leaves)
            before = watch.get()
            holds = truth(test(), "'while'")
            watch.unchanged("'while'", before)
            return holds

        found: list[Tensor] = while_loop(
            extra_test,
            lambda *leaves: loop.step(leaves, body),
            loop.first(),
            maximum_iterations=None if most is None else most - done,
        )
        return found

    with watch(), raising_while("a 'while' is traced"):
        loop.run(attempt, lambda: False)


def for_stmt(
    iterated: Any,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    get_state: State,
    set_state: Setter,
    names: Sequence[str],
    options: Mapping[str, Any],
) -> None:
    """Run a block for each item.

    Parameters
    ----------
    iterated
        The iterable.
    extra_test
        Called before each step: whether to continue. None if no statement in the block ends the
        loop.
    body
        The block, a function of the item.
    get_state, set_state, names
        The variables that the block changes, as for an ``if``.
    options
        The arguments of ``set_loop_options``. Under ``ends``: how many of the variables, the last
        ones, end with the loop.
    """
    rows = rows_of(iterated)
    most = options.get("maximum_iterations")
    if rows is None:
        count = len(names) - options["ends"]
        _python_for(iterated, extra_test, body, get_state, set_state, names, count, most)
        return
    if most is not None:
        rows = rows.first(most)
    shared = shared_arrays(get_state)  # before others refer to them
    watch = Watch("for", (body,), names, set_state)
    with watch(), raising_while("a 'for' is traced"):
        loop = _Loop("'for'", get_state, set_state, names, watch, options["ends"], shared)
        _staged_for(rows, extra_test, body, loop)


class _Widens(Exception):
    """A step changes a shape, which a scan does not allow."""


def _staged_for(rows: LoopRows, extra_test: Any, body: Callable[[Any], None], loop: _Loop) -> None:
    length = rows.length

    def always_runs() -> bool:
        return extra_test is None and type(length) is int and length > 0

    def scanned() -> Sequence[Tensor]:
        def step(carry: list[Tensor], x: Any) -> tuple[list[Tensor], None]:
            found = loop.step(carry, lambda: body(rows.item(x)))
            for a, b in zip(carry, found, strict=True):
                if not TensorSpec(a.shape, a.dtype).admits(b.shape):
                    raise _Widens
            return found, None

        found: list[Tensor] = scan(step, loop.first(), rows.tensors)[0]
        return found

    def counted() -> Sequence[Tensor]:
        def holds(i: Tensor, *leaves: Tensor) -> Any:
            inside = i < length
            if extra_test is None:
                return inside
            loop.enter(leaves)
            more = extra_test()
            return (
                ops["logical_and"](inside, truth(more, "'for'"))
                if is_traced(more)
                else (inside if more else as_tensor(False))
            )

        def step(i: Tensor, *leaves: Tensor) -> list[Tensor]:
            return [i + 1, *loop.step(leaves, lambda: body(rows.at(i)))]

        zero = as_tensor(0)
        return list(while_loop(holds, step, [zero, *loop.first()]))[1:]

    if extra_test is not None:
        loop.run(counted, always_runs)
        return
    try:
        loop.run(scanned, always_runs)
    except _Widens:
        loop.run(counted, always_runs)


def _python_for(
    iterated: Any,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    get_state: State,
    set_state: Setter,
    names: Sequence[str],
    count: int,
    most: int | None,
) -> None:
    """Run a block for each item of a Python iterable; a traced condition may end the loop."""
    copies = 0
    check_consumed([iterated])
    if active_graph.get() is not None and getattr(iterated, "_gradtape_unrolled", False):
        warn_user(
            "autograph: the elements of a dataset become constants of the trace, with one copy of "
            "the loop's body for each; loop outside the function and trace only the step",
            UserWarning,
        )
    for done, item in enumerate(iterated):
        if most is not None and done >= most:
            return
        more = True if extra_test is None else extra_test()
        if not is_traced(more):
            if not more:
                return
            body(item)
            continue
        copies += 1
        if copies > _MOST_COPIES:
            raise ValueError(
                f"{user_line()}: the trace unrolls this Python loop, and a traced condition ends "
                f"it: this takes more than {_MOST_COPIES:,} copies of its body; loop over a tensor "
                "(gradtape.arange) to trace one step instead"
            )
        if_stmt(
            truth(more, "'for'"),
            lambda: body(item),  # noqa: B023
            lambda: None,
            get_state,
            set_state,
            names,
            count,
            (body,),
        )
