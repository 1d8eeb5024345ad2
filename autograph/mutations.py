"""Changes of Python objects in traced blocks: made in each run, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..core.errors import TraceError
from ..core.extend import Function, Module, Operators, Variable, flatten, line_of, user_line
from .holders import WHOLE, Entries, State
from .reach import reached
from .values import Undefined

__all__ = ["Found", "Retrace", "Watch", "check_consumed", "deferring", "raising_while", "unwatched"]

_PACKAGE = __name__.partition(".")[0]
_watches: ContextVar[tuple[Watch, ...]] = ContextVar("watches", default=())
_raised: ContextVar[list[tuple[Exception, str]] | None] = ContextVar("raised", default=None)


class Retrace(Exception):
    """The trace must be made again, because of something found after its start."""


class Found(Retrace):
    """A block changes more values than those that are known to change."""


class _Absent(Undefined):
    """The value under a key that an object does not have."""


class _Place(NamedTuple):
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
        self.places: list[_Place] = []
        cells = getattr(set_state, "__closure__", None) or ()
        self.holders, self.seen = reached(blocks, frozenset([*names, *map(id, cells)]))

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Watch the ``with`` block; if it raises, undo all changes."""
        token = _watches.set((*_watches.get(), self))
        try:
            yield
        except BaseException:
            self.restore()
            raise
        finally:
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
        new = [
            _Place(holder, key)
            for holder in self.holders
            for key in holder.changed()
            if key is WHOLE or (id(holder), key) not in known
        ]
        new = [place for place in new if not self._is_new_module(place)]
        for holder, key in new:
            if key is WHOLE or not isinstance(holder, Entries):
                raise ValueError(self._told(holder))
        if new:
            self.places += new
            raise Found

    def unchanged(self, where: str, values: Sequence[Any]) -> None:
        """Raise if a test changes anything; ``values`` are those of the places before it."""
        try:
            self.find()
            changed = [p.name for p, x in zip(self.places, values, strict=True) if p.get() is not x]
        except Found:
            changed = [self.places[-1].name]
        if changed:
            raise ValueError(
                f"{user_line()}: the test of a traced {where} changes {changed[0]}; Python "
                "evaluates it only once, while tracing; make the change in the loop's body"
            )

    def _is_new_module(self, place: _Place) -> bool:
        """Return whether a block makes a variable or layer at its first call, for all runs."""
        holder, key = place
        now = holder.read()
        if key is WHOLE:
            if not isinstance(holder.of, list):
                return False
            rest, value = now, [x for i, x in now.items() if i not in holder.before]
            if len(value) != len(rest) - len(holder.before) or holder.before.items() - rest.items():
                return False
        else:
            value = now.get(key)
            if holder.before.get(key) is not None:
                return False
        made = flatten(value)
        if not made or not all(isinstance(x, (Variable, Module, Function)) for x in made):
            return False
        if any(id(x) in self.seen for x in made):
            return False
        holder.before = now if key is WHOLE else {**holder.before, key: value}
        return True

    def accept(self) -> None:
        """Take the objects as they are now, with changes that are meant to happen once."""
        kept = [(place, place.start) for place in self.places]
        for holder in self.holders:
            if holder.changed():
                holder.before = holder.read()
        for (holder, key), value in kept:
            holder.before.pop(key, None)
            if not isinstance(value, _Absent):
                holder.before[key] = value

    def _told(self, holder: State) -> str:
        kind = "" if holder.of is None else f"the {type(holder.of).__name__} "
        name = holder.name.partition("[{")[0] if isinstance(holder, Entries) else holder.name
        name = name if holder.of is None else repr(name)
        return (
            f"{user_line()}: {kind}{name} is changed inside a traced "
            f"'{self.what}', which Python runs only once, while tracing, and not in each step; "
            "collect values with gradtape.scan or map, or write into a tensor with .at"
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


@contextmanager
def unwatched() -> Iterator[None]:
    """Let the ``with`` block change objects once, while tracing, as it is meant to."""
    watches = _watches.get()
    for watch in watches:
        watch.find()
    token = _watches.set(())
    try:
        yield
    finally:
        _watches.reset(token)
        for watch in watches:
            watch.accept()


@contextmanager
def raising_while(what: str) -> Iterator[None]:
    """Note errors of the user's code: they are raised while ``what`` is traced."""
    try:
        yield
    except Retrace:
        raise
    except Exception as error:
        raised = _raised.get()
        if raised is not None and all(error is not e for e, _ in raised):
            raised.append((error, what))
        raise


@contextmanager
def deferring() -> Iterator[None]:
    """Raise the errors of traced blocks, whatever the code around them catches.

    A ``try`` around a traced block would catch what the block raises in some runs only, and decide
    for all of them.
    """
    raised: list[tuple[Exception, str]] = []
    token = _raised.set(raised)
    try:
        yield
    except Exception as error:
        if not raised or (error is raised[0][0] and not _is_users(error)):
            raise
    finally:
        _raised.reset(token)
    if raised:
        error, what = raised[0]
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise TraceError(
            f"{line_of(error)}: {text}; this is raised while {what}, whatever a run would do; to "
            "check in each run, use 'assert'"
        ) from error


def _is_users(error: Exception) -> bool:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    name = "" if place is None else str(place.tb_frame.f_globals.get("__name__"))
    return name.partition(".")[0] != _PACKAGE
