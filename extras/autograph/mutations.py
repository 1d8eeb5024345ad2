"""Changes of Python objects and arrays in traced blocks: made in each run, or refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..core.extend import (
    COUNTS,
    Function,
    Module,
    Operators,
    Tensor,
    Variable,
    flatten,
    setting_up,
    user_line,
    warn_user,
)
from .effects import Retrace, at_the_end, note_changes
from .holders import WHOLE, Entries, State, is_same
from .reach import RANDOM, holders_of, reached
from .values import Mark, Undefined, is_number, is_traced, is_weak

_CACHE, _MADE = cached_property, (Variable, Module, Function)
_watches: ContextVar[tuple[Watch, ...]] = ContextVar("watches", default=())


class MoreChanges(Retrace):
    """A block changes more values than those that are known to change."""


class _Absent(Undefined):
    """The value under a key that an object does not have."""


class _ChangePlace(NamedTuple):
    """Where a block changes a value: an attribute, an item, or a variable outside."""

    holder: Entries
    key: Any

    @property
    def name(self) -> str:
        """How the user refers to it."""
        return self.holder.name_of(self.key)

    @property
    def start(self) -> Any:
        """The value before the block."""
        before = self.holder.before
        if self.key in before:
            return before[self.key]
        return self.holder.inherited.get(self.key, _Absent(self.name))

    def get(self) -> Any:
        """Return the value now."""
        return self.holder.read().get(self.key, _Absent(self.name))

    def set(self, value: Any) -> None:
        """Set the value."""
        if isinstance(value, _Absent):
            self.holder.drop(self.key)
        else:
            self.holder.put(self.key, value)


class Watch:
    """Finds what blocks change while they are traced, besides the variables that they assign.

    A changed attribute, item or outer variable becomes a further variable of the statement. All
    other changes raise: Python makes them once, while tracing, and not in each run.

    Parameters
    ----------
    what
        The statement.
    blocks
        The functions that are traced.
    names
        The variables that they assign.
    set_state
        The function that assigns them.
    """

    def __init__(
        self,
        what: str,
        blocks: Sequence[Callable[..., Any]],
        names: Sequence[str] = (),
        set_state: Any = None,
    ) -> None:
        self.what = what
        self.places: list[_ChangePlace] = []
        self._is_outermost = not _watches.get()
        cells, outer = (), set(names)
        if set_state is not None:  # locals are in its cells; the others are globals
            cells = set_state.__closure__ or ()
            outer.difference_update(set_state.__code__.co_freevars)
        self.holders, self.seen = reached(blocks, frozenset([*outer, *map(id, cells)]))

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Watch the ``with`` block; if it raises, undo all changes."""
        token = _watches.set((*_watches.get(), self))
        once = setting_up.set(unwatched)
        try:
            yield
        except BaseException:
            self.restore()
            raise
        finally:
            setting_up.reset(once)
            _watches.reset(token)

    def restore(self) -> None:
        """Undo all changes."""
        for holder in self.holders:
            if holder.changed():
                holder.restore()

    def get(self) -> tuple[Any, ...]:
        """Return the values of the changed places."""
        return tuple([place.get() for place in self.places])

    def set(self, values: Sequence[Any]) -> None:
        """Set the values of the changed places."""
        for place, value in zip(self.places, values, strict=True):
            place.set(value)

    @property
    def names(self) -> list[str]:
        """How the user refers to the changed places."""
        return [place.name for place in self.places]

    @property
    def start(self) -> tuple[Any, ...]:
        """The values of the changed places before the statement."""
        return tuple([place.start for place in self.places])

    def find(self) -> None:
        """Look for changes.

        Raises
        ------
        Found
            If a block changes a value that the statement does not know yet.
        ValueError
            If it changes an object in a way that only Python can make.
        """
        known = {(id(place.holder), place.key) for place in self.places}
        new = []
        for holder in self.holders:
            for key in holder.changed():
                if (id(holder), key) in known or self._is_new_module(holder, key):
                    continue
                if key is WHOLE or not isinstance(holder, Entries):
                    raise ValueError(self._holder_text(holder))
                new.append(_ChangePlace(holder, key))
        if new:
            self.places += new
            if self._is_outermost:
                note_changes(new)
            raise MoreChanges

    def unchanged(self, where: str, values: Sequence[Any]) -> None:
        """Raise if a test changes anything; ``values`` are those of the places before it."""
        known = len(self.places)
        try:
            self.find()
        except MoreChanges:
            changed = [place.name for place in self.places[known:]]
        else:
            changed = [p.name for p, x in zip(self.places, values, strict=True) if p.get() is not x]
        if changed:
            raise ValueError(
                f"{user_line()}: the test of a traced {where} changes {changed[0]}; Python "
                "evaluates it only once, while tracing; make the change in the loop's body"
            )

    def _is_new_module(self, holder: State, key: Any) -> bool:
        """Return whether a block makes a variable, layer or cache once, for all runs."""
        now = holder.read()
        if key is WHOLE:
            if not isinstance(holder.of, list):
                return False
            value = [x for i, x in now.items() if i not in holder.before]
            if not all(i in now and is_same(now[i], x) for i, x in holder.before.items()):
                return False
        else:
            value = now.get(key)
            if holder.before.get(key) is not None:
                return False
        made = flatten(value)
        cached = key is not WHOLE and isinstance(getattr(type(holder.of), str(key), None), _CACHE)
        if cached:
            new = not any(map(is_traced, made))
        else:
            new = bool(made) and all(isinstance(x, _MADE) and id(x) not in self.seen for x in made)
        if new:
            holder.before = now if key is WHOLE else {**holder.before, key: value}
        return new

    def _holder_text(self, holder: State) -> str:
        kind = "" if holder.of is None else f"the {type(holder.of).__name__} "
        name = holder.name.partition("[{")[0] if isinstance(holder, Entries) else holder.name
        name = name if holder.of is None else repr(name)
        advice = (
            "collect values with gradtape.scan or map, or write into a tensor with .at; a function "
            "with @gradtape.autograph.do_not_convert may change it once"
        )
        if holder.of is None or isinstance(holder.of, RANDOM):
            advice = "draw with gradtape.random"
        elif hasattr(holder.of, "__next__"):
            advice = "take the items before, or loop over a tensor"
        return (
            f"{user_line()}: {kind}{name} is changed inside a traced '{self.what}', which Python "
            f"runs only once, while tracing, and not in each step; {advice}"
        )


def give_back(places: Sequence[_ChangePlace], roots: Sequence[Any], always: bool) -> None:
    """Give objects that outlive a trace the numbers back that they held before.

    Parameters
    ----------
    places
        What traced statements changed.
    roots
        The objects from which those that outlive the trace can be reached.
    always
        Whether all values go back, because the trace failed.
    """
    if not places:
        return
    outlives = {id(holder.of) for holder in holders_of(roots)}
    for place in reversed(places):
        now, before = place.get(), place.start
        if id(place.holder.of) not in outlives or not is_traced(now) or is_traced(before):
            continue
        counts = type(before) in (bool, int) and now.dtype.kind in "bi"  # in a batch, say
        if always or counts or (is_weak(now) and is_number(before)):
            place.set(before)
            if not always:
                warn_user(
                    f"autograph: a traced statement changes {place.name} in each run, but a run "
                    f"cannot change Python's object, which keeps {before!r} from before the trace; "
                    "to count over several runs, use a gradtape.Variable",
                    UserWarning,
                )


def check_consumed(iterators: Iterable[Any]) -> None:
    """Raise if a traced block takes items from an iterator that was made outside it."""
    watches = _watches.get()
    if not watches:
        return
    for x in iterators:
        if hasattr(type(x), "__next__") and not isinstance(x, Operators):
            for watch in watches:
                if id(x) in watch.seen:
                    raise ValueError(
                        f"{user_line()}: a {type(x).__name__} from outside is read inside a traced "
                        f"'{watch.what}', which Python does only once, while tracing, and not in "
                        "each step; take the items before, or loop over a tensor"
                    )


def check_separate(name: str, chosen: Any, *originals: Any) -> None:
    """Check, when the function has been traced, that containers stay as they are.

    Parameters
    ----------
    name
        The variable.
    chosen
        Its value after a traced statement. Its containers are new.
    originals
        The values that it may be in a run. Their containers may have other names.
    """
    seen = [watch.seen for watch in _watches.get()]
    old = [x for value in originals for x in _containers(value) if any(id(x) in s for s in seen)]
    if not old:
        return
    kept = [(x, _copied(x)) for x in (*old, *_containers(chosen))]
    line = user_line()

    def check() -> None:
        for x, before in kept:
            now = _copied(x)
            if len(now) != len(before) or not all(map(is_same, now, before)):
                raise ValueError(
                    f"{line}: a run decides which {type(x).__name__} {name!r} is, and one of them "
                    "is changed afterwards, which would not reach the other; make a copy and "
                    "change that"
                )

    at_the_end(check)


def _containers(value: Any) -> Iterator[Any]:
    """Yield the lists and dicts in a value."""
    if isinstance(value, (list, dict)):
        yield value
    if isinstance(value, (list, tuple, dict)):
        for x in value.values() if isinstance(value, dict) else value:
            yield from _containers(x)


def _copied(x: Any) -> list[Any]:
    return [y for pair in x.items() for y in pair] if isinstance(x, dict) else list(x)


def was_there(x: Any) -> bool:
    """Return whether an object was there before the traced statement."""
    return any(id(x) in watch.seen for watch in _watches.get())


@contextmanager
def unwatched() -> Iterator[None]:
    """Let the ``with`` block change objects once, while tracing, as it is meant to."""
    holders = [holder for watch in _watches.get() for holder in watch.holders]
    held = [holder.read() for holder in holders]
    token = _watches.set(())
    try:
        yield
    finally:
        _watches.reset(token)
        for holder, before in zip(holders, held, strict=True):
            holder.accept(before)


# -- NumPy arrays in loops: tensors, which no statement changes ------------------------------------


GetState = Callable[[], tuple[Any, ...]]

#: Of tensors that stand for arrays which others refer to.
_SHARED = Mark()


def _references(get_state: GetState, i: int) -> int:
    state = get_state()
    return sys.getrefcount(state[i])


def _of_one_name() -> int:
    array = np.zeros(1)

    def get_state() -> tuple[Any, ...]:
        return (array,)

    return _references(get_state, 0)


#: The reference count of an array that one variable holds.
_ONE = _of_one_name()


def shared_arrays(get_state: GetState) -> frozenset[int]:
    """Return which variables hold arrays that something else refers to, such as a view.

    Parameters
    ----------
    get_state
        Returns the variables. Nothing else may hold their values yet.
    """
    if not COUNTS:
        return frozenset()
    arrays = [i for i, x in enumerate(get_state()) if isinstance(x, np.ndarray)]
    return frozenset([i for i in arrays if _references(get_state, i) > _ONE])


def mark_shared(tensor: Tensor) -> Tensor:
    """Mark a tensor as an array that something else refers to."""
    return _SHARED.put_on(tensor)


def check_in_place(value: Any) -> None:
    """Raise if an augmented assignment would change an array that has another name.

    Raises
    ------
    ValueError
        If ``value`` is a marked tensor: the assignment would change the variable alone.
    """
    if value in _SHARED:
        raise ValueError(
            f"{user_line()}: this would change a NumPy array in place, which a traced statement "
            "turned into a tensor, while something else refers to the array, such as a view; write "
            "'a = a + b', or copy the array before the statement"
        )
