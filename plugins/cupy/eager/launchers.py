"""Kernels of ops that remember, by the dtypes and shapes of arrays, what to launch.

Looking that up is most of what an op costs on the host besides the launch, so it is written out
for one array and for two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....core.errors import ExecutorWarning, OutOfMemory
from ....core.extend import SCALARS, Backend, Op
from ..devices import failure_text
from ..launching import CannotCompile, report
from .plans import Lowered, Plan, elementwise, filled, is_elementwise, may_have_plan
from .several import in_kernels

#: The maximum of plans of an op, and of what it was lowered for; and of attempts in vain.
_PLANS, _LOWERED, _IN_VAIN = 1024, 64, 16
#: The types of parameters that plans depend on by their value.
_SIMPLE = (int, float, bool, str, tuple, type(None))


class Launcher:
    """The plans of one op.

    Parameters
    ----------
    op
        The op.
    owner
        The CuPy backend.
    xp
        The namespace that its kernels are bound to.
    other
        The function that runs the op where there is no plan.
    """

    def __init__(self, op: Op, owner: Backend, xp: Any, other: Callable[..., Any]) -> None:
        self.op, self.owner, self.xp, self.other = op, owner, xp, other
        #: Whether a number among the op's arguments may differ from call to call.
        self.weak = isinstance(op.kernel, str) and is_elementwise(op)
        #: By the dtypes and shapes of arrays, functions of these arrays.
        self.plans: dict[Any, Plan] = {}
        self._lowered: dict[Any, tuple[Lowered, bool] | None] = {}
        #: By the dtypes of arrays, how many of the last attempts gave no plan.
        self._in_vain: dict[Any, int] = {}

    def find(self, key: Any, given: Sequence[Any], params: Mapping[str, Any]) -> Plan:
        """Return a plan that was not made before; or CuPy's function, if there is none."""
        arrays = [x for x in given if type(x) not in SCALARS]
        if not arrays or any(type(x) is not self.xp.ndarray or 0 in x.shape for x in arrays):
            return self.other
        # an attempt takes long: where none has helped, the next would not
        dtypes = tuple([x.dtype for x in arrays])
        if len(self.plans) >= _PLANS or self._in_vain.get(dtypes, 0) >= _IN_VAIN:
            return self.other
        plan = self._plan(given, arrays, params, dtypes)
        found = self.plans[key] = self.other if plan is None else plan
        return found

    def _plan(
        self, given: Sequence[Any], arrays: Sequence[Any], params: Mapping[str, Any], dtypes: Any
    ) -> Plan | None:
        try:
            if self.op.reads == "shapes":
                return filled(self.op, self.xp, given, params)
            if is_elementwise(self.op):
                found = self._elementwise(given, arrays[0], params)
                if found is None:
                    return None
                lowered, weak = found
                return elementwise(self.op, lowered, self._unless(weak), self.xp, given, params)
            specs = [x if type(x) in SCALARS else (x.shape, x.dtype) for x in given]
            lowered = Lowered(self.op, self.owner, specs, arrays[0], params)
            plan = in_kernels(lowered, self.xp, given)
        except CannotCompile as error:
            report(error)
            return None
        except NotImplementedError:
            # an elementwise op is lowered once for these dtypes, and no attempt takes long
            if is_elementwise(self.op):
                return None
            self._in_vain[dtypes] = self._in_vain.get(dtypes, 0) + 1
            return None
        except Exception as error:
            return self._after(error, params)
        self._in_vain.pop(dtypes, None)
        return plan

    def _after(self, failure: Exception, params: Mapping[str, Any]) -> Plan:
        """Return a plan after one failed: CuPy's function runs the op, or has a better message."""
        reported = False

        def run(*given: Any) -> Any:
            nonlocal reported
            found = self.other(*given, **params)
            if not reported:
                reported = True
                kind, text = type(failure).__name__, " ".join(str(failure).split())[:300]
                warnings.warn(
                    f"backend 'cupy': no kernels can be prepared for {self.op.name}, and CuPy's "
                    f"functions run instead ({kind}: {text})",
                    ExecutorWarning,
                    stacklevel=4,
                )
            return found

        return run

    def _unless(self, weak: bool) -> Callable[..., Any] | None:
        """Return what runs the op for numbers that are not of its dtype; None without numbers."""
        return self.other if weak else None

    def _elementwise(
        self, given: Sequence[Any], like: Any, params: Mapping[str, Any]
    ) -> tuple[Lowered, bool] | None:
        """Return the op's steps for some dtypes, and whether they depend on numbers only here."""
        weak = self.weak and len(given) == 2 and any(type(x) in SCALARS for x in given)
        dtypes = [
            x.dtype if type(x) not in SCALARS else type(x) if weak else _by_value(x) for x in given
        ]
        # by their texts: 0.0 equals -0.0, 1 equals True, and nan equals nothing
        key = (*dtypes, *((name, type(x), repr(x)) for name, x in params.items()))
        if key not in self._lowered:
            if len(self._lowered) >= _LOWERED:
                return None
            self._lowered[key] = None
            specs = [x if type(x) in SCALARS else ((7,), x.dtype) for x in given]
            lowered = Lowered(self.op, self.owner, specs, like, params)
            if not weak or _is_one_step(lowered, given):
                self._lowered[key] = lowered, weak
        return self._lowered[key]


def _is_one_step(lowered: Lowered, given: Sequence[Any]) -> bool:
    """Return whether the only step has an op's number at its own place."""
    (first, *rest) = lowered.steps
    return not rest and [type(x) in SCALARS for x in first.inputs] == [
        type(x) in SCALARS for x in given
    ]


# -- functions of arrays ---------------------------------------------------------------------------


def kernel_of(op: Op, owner: Backend, xp: Any, other: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of an op, which launches what its plans say.

    Parameters
    ----------
    op
        The op.
    owner
        The CuPy backend.
    xp
        The namespace that its kernels are bound to.
    other
        The portable kernel, as a function of arrays.
    """
    if not may_have_plan(op) or not hasattr(xp, "RawKernel"):
        return other
    if not hasattr(xp.ndarray, "_c_contiguous"):
        return other
    launcher = Launcher(op, owner, xp, other)
    alone = xp.cuda.runtime.getDeviceCount() == 1
    if op.defaults or len(op.inputs) > 2:
        run = _of_arrays(launcher)
    else:
        run = _of_one(launcher) if len(op.inputs) == 1 else _of_two(launcher)
    # with one device, nothing else is to be done around it
    run.guarded = alone  # type: ignore[attr-defined]
    return run


def _of_one(launcher: Launcher) -> Callable[..., Any]:
    get, array, other = launcher.plans.get, launcher.xp.ndarray, launcher.other
    full = launcher.xp.cuda.memory.OutOfMemoryError

    def run(*given: Any, **params: Any) -> Any:
        try:
            (x,) = given
            if params or type(x) is not array:
                return other(x, **params)
            key = x.dtype, x.shape, x._c_contiguous or x.strides
            return (get(key) or launcher.find(key, given, params))(x)
        except full as error:
            raise _out_of_memory(launcher, given, error) from error

    return run


def _of_two(launcher: Launcher) -> Callable[..., Any]:
    get, array, other = launcher.plans.get, launcher.xp.ndarray, launcher.other
    full = launcher.xp.cuda.memory.OutOfMemoryError
    of_number: Callable[[Any], Any] = type if launcher.weak else _by_value

    def run(*given: Any, **params: Any) -> Any:
        try:
            x, y = given
            if params:
                return other(x, y, **params)
            key: Any
            if type(x) is array:
                if type(y) is array:
                    key = (
                        x.dtype, x.shape, x._c_contiguous or x.strides,
                        y.dtype, y.shape, y._c_contiguous or y.strides,
                    )  # fmt: skip
                else:
                    key = x.dtype, x.shape, x._c_contiguous or x.strides, of_number(y)
            elif type(y) is array:
                key = of_number(x), y.dtype, y.shape, y._c_contiguous or y.strides
            else:
                return other(x, y)
            return (get(key) or launcher.find(key, given, params))(x, y)
        except full as error:
            raise _out_of_memory(launcher, given, error) from error

    return run


def _by_value(number: Any) -> Any:
    return type(number), repr(number)


def _of_arrays(launcher: Launcher) -> Callable[..., Any]:
    get, array, other = launcher.plans.get, launcher.xp.ndarray, launcher.other
    full = launcher.xp.cuda.memory.OutOfMemoryError

    def run(*given: Any, **params: Any) -> Any:
        key: list[Any] = []
        for x in given:
            if type(x) is array:
                key += x.dtype, x.shape, x._c_contiguous or x.strides
            elif type(x) in SCALARS:
                key += type(x), repr(x)
            else:
                return other(*given, **params)
        for name, value in params.items():
            if type(value) not in _SIMPLE:
                return other(*given, **params)
            key += name, type(value), repr(value)
        try:
            plan = get(tuple(key)) or launcher.find(tuple(key), given, params)
            return other(*given, **params) if plan is other else plan(*given)
        except full as error:
            raise _out_of_memory(launcher, given, error) from error

    return run


def _out_of_memory(launcher: Launcher, given: Sequence[Any], error: Exception) -> OutOfMemory:
    return OutOfMemory(failure_text(launcher.xp, launcher.op.name, given, error))
