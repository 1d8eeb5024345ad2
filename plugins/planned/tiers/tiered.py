"""Tiers: a plan runs by NumPy at first, and by compiled loops once it has run for long enough.

Loops are compiled in the background, so the first call is as cheap as without them, and a program
that ends soon never pays for a compiler. Then calls alternate between both plans until one of them
has proved faster. Both share the memory of packed variables and give the same bits, so a switch
between two calls changes only their duration.

Loops come from an executor with the attribute ``emitter``, a function that returns an
:class:`Emitter` whose loops give NumPy's bits.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary, ref

from ....core.extend import registry, warn_user
from ..combining import Emitter
from ..writing import Emission
from .background import BACKGROUND, Interrupted
from .measuring import LoopSource, MeasuredLoops, in_microseconds, in_words

if TYPE_CHECKING:
    from ..plan import Plans

#: A function that runs a program on arrays of certain shapes, and its emission.
Plan: TypeAlias = tuple[Callable[..., list[Any]], Emission | None]

#: The least number of calls before loops are compiled: what runs a few times ends soon.
_CALLS = 5
#: The number of calls of each plan that are timed, to choose one.
_ROUNDS = 6


def loops_of_plugins() -> LoopSource | str | None:
    """Return the loops of the first executor that provides some; plugins' own come first.

    If none can be used here, return why; None if there is no such executor.
    """
    reason = None
    for executor in registry().executors.values():
        emitter = getattr(executor, "emitter", None)
        if emitter is None:
            continue
        try:
            found = _made.get(emitter)
            if found is None:
                found = _made[emitter] = LoopSource(emitter)
            return found
        except Exception as error:  # of any type: it is a plugin's
            reason = reason or in_words(error)
    return reason


_made: WeakKeyDictionary[Callable[[], Emitter], LoopSource] = WeakKeyDictionary()


class TieredPlan:
    """Runs a plan until loops have replaced it, or have turned out to be slower.

    Parameters
    ----------
    owner
        What holds the plan.
    key
        The plan's place there.
    plan
        The plan, without loops.
    source
        Where loops come from.

    Attributes
    ----------
    told
        What is known about the plan's loops, for ``fn.explain()``.
    """

    def __init__(self, owner: Plans, key: Any, plan: Plan, source: LoopSource) -> None:
        self._owner, self._key = ref(owner), key
        self._source = source
        self._plans = [plan]  # and that with loops, when it is ready
        self._times = [float("inf"), float("inf")]
        self._calls, self._spent, self._asked = 0, 0.0, False
        self._stays = False
        self.told = f"compiled in the background once calls have taken {source.patience} s"

    def __call__(self, *arrays: Any) -> list[Any]:
        """Run the program."""
        if self._stays:
            self._settle(0)  # before anything runs: a filter may turn the warning into an error
        turn = self._calls % len(self._plans)
        start = perf_counter()
        found: list[Any] = self._plans[turn][0](*arrays)
        taken = perf_counter() - start
        self._calls += 1
        if len(self._plans) > 1:
            self._compare(turn, taken)
        elif self._asked:
            BACKGROUND.wake()
        else:
            self._spent += taken
            if self._spent >= self._source.patience and self._calls >= _CALLS:
                self._ask()
        return found

    def _ask(self) -> None:
        """Have the loops compiled."""
        self._asked, self.told = True, "being compiled in the background"
        this = ref(self)  # a function that is no longer used need not be compiled

        def job() -> None:
            plan = this()
            if plan is not None:
                plan.compile()

        BACKGROUND.add(job)

    def compile(self) -> None:
        """Make the plan with loops, in the background."""
        owner, source = self._owner(), self._source
        if owner is None:
            return
        plan, problem = None, source.problem
        try:
            if problem is None:
                plan = owner.with_emitter(self._plans[0], MeasuredLoops(source))
        except Interrupted:
            raise
        except BaseException as error:  # sys.exit would end the thread, and all its jobs
            problem = source.failed(error)
        if plan is None:
            self.told, self._stays = problem or "no group is faster as a loop", True
        else:
            self.told, self._calls = "compiled; the next calls compare both plans", 0
            self._plans = [self._plans[0], plan]

    def _compare(self, turn: int, taken: float) -> None:
        self._times[turn] = min(self._times[turn], taken)
        if self._calls < 2 * _ROUNDS:
            return
        ufuncs, loops = self._times
        faster = _is_faster(loops, ufuncs)
        us = f"{in_microseconds(loops)} a call with them, {in_microseconds(ufuncs)} without"
        self.told = f"in use: {us}" if faster else f"not in use: {us}"
        self._settle(int(faster))

    def _settle(self, number: int) -> None:
        """Replace this object by one of the plans."""
        owner = self._owner()
        if owner is not None:
            owner.settle(self._key, self._plans[number], self.told)
        warning, self._source.warning = self._source.warning, None
        if warning is not None:
            warn_user(warning, RuntimeWarning)


def _is_faster(loops: float, ufuncs: float) -> bool:
    return loops <= ufuncs
