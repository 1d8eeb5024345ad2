"""Compare traces with the Python code before anything is written."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.extend import (
    AllRecords,
    ConcreteFunction,
    Graph,
    Node,
    Op,
    Recorder,
    Symbol,
    Tensor,
    Variable,
    active_tapes,
    known_size,
    recording_to,
    registry,
    to_numpy,
    user_line,
)
from ..errors import SaveError
from ..proofs.golden import Evaluation, evaluate, why
from ..proofs.samples import Sample, described, filled_in, is_heavy
from .graphs import op_nodes
from .steps import RecordedRun, SameTrace, same_trace, takes
from .traces import SavedFunction

# By the size of a real number; the two run the same kernels, and may add in another order.
_TOLERANCE = {2: 2e-2, 4: 1e-3}
# Longer runs are not searched for the op at which two results part.
_MOST_STEPS = 20_000


def compared(
    function: SavedFunction,
    concrete: ConcreteFunction,
    sample: Sample,
    variables: Sequence[Variable],
    names: dict[int, str],
    order: int,
    replay: bool = True,
) -> Evaluation:
    """Return the results of a function's Python code, after comparing its trace with them.

    Outputs, gradients up to ``order`` and the new values of variables are compared. Without
    ``replay``, this is skipped where the trace takes exactly the steps of the Python code. If the
    Python code raises, or the inputs do not fit the trace, so does this function: there is nothing
    to guarantee for such inputs. If only a gradient raises, everything before it is compared. A
    trace that raises for unusual inputs refuses them with a message, as it will in a loaded model.

    Raises
    ------
    SaveError
        If the trace gives a different result.
    SameTrace
        If variables are very large, no gradients are requested, and a trace of the Python code for
        these sizes takes the same steps.
    """
    python, inputs = function.python, sample.inputs
    if python is None:  # a trace is all there is
        return evaluate(concrete, concrete, inputs, variables, names, order)
    concrete.fitted(*filled_in(concrete, inputs))
    if is_heavy(concrete, inputs) and not order and same_trace(python, concrete, inputs):
        raise SameTrace
    recorded = None if replay else RecordedRun()
    run = recorded.of(python) if recorded else python
    found = evaluate(run, concrete, inputs, variables, names, order)
    if recorded and takes(recorded, concrete, inputs):
        return found
    try:
        replayed = evaluate(concrete, concrete, inputs, variables, names, order, found.values)
        if replayed.problem is not None and found.problem is None:
            raise replayed.problem
    except Exception as error:
        if not sample.ordinary:
            raise
        raise _refusal(
            function, concrete, inputs, f"the trace raises {why(error)}, the Python code does not"
        ) from error
    what = _difference(found, replayed)
    if what:
        place = _parting(python, concrete, inputs, variables, names)
        raise _refusal(function, concrete, inputs, f"the trace {what}{place}")
    return found


def _difference(found: Evaluation, replayed: Evaluation) -> str:
    """Describe how a trace differs from the Python code; empty if it does not."""
    values, others = ({**x.values, **x.changed} for x in (found, replayed))
    wrong = [key for key, value in values.items() if differs(value, others.get(key))]
    # a variable that is made where it is used is another one whenever Python makes it
    own = [key for key in replayed.changed if not key.startswith("variable captured/")]
    wrong += [key for key in own if key not in found.changed]
    if found.problem is None:  # a branch that Python did not take has zeros in a trace
        wrong += [k for k, x in replayed.values.items() if k not in values and np.any(x)]
    if wrong:
        return (
            f"does not give the {', '.join(wrong[:5])} of the Python code: "
            f"{_results(wrong[0], values, others)}"
        )
    if _equal(found.plain, replayed.plain):
        return ""
    python, trace = (repr(x.plain)[:80] for x in (found, replayed))
    return f"returns {trace} beside tensors, where the Python code returns {python}"


def differs(value: np.ndarray[Any, Any], other: np.ndarray[Any, Any] | None) -> bool:
    """Return whether two results differ by more than the rounding of their dtype explains."""
    if other is None or value.shape != other.shape or value.dtype != other.dtype:
        return True
    if value.dtype.kind not in "fc" or np.array_equal(value, other):
        return not np.array_equal(value, other)
    real_size = value.dtype.itemsize // (2 if value.dtype.kind == "c" else 1)
    tolerance = _TOLERANCE.get(real_size, 1e-6)
    scale = np.max(np.abs(value[np.isfinite(value)]), initial=1.0)
    return not np.allclose(value, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def _equal(values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether Python values are equal as in a file: same type, and nan equals nan."""
    pairs = zip(values, others, strict=False)
    return len(values) == len(others) and all(
        a is b or (type(a) is type(b) and (repr(a) == repr(b) or np.array_equal(a, b)))
        for a, b in pairs
    )


def _results(name: str, values: Mapping[str, Any], others: Mapping[str, Any]) -> str:
    """Return both results of one name, abbreviated: where they differ most."""
    value, other = values.get(name), others.get(name)
    if value is None or other is None or value.shape != other.shape or value.dtype != other.dtype:
        shown = [
            "none" if x is None else f"{x.dtype}{list(x.shape)} {_short(x)}" for x in (value, other)
        ]
        return f"{shown[0]} in Python, {shown[1]} in the trace"
    with np.errstate(all="ignore"):
        far = np.abs(value.astype(np.complex128) - other)
    place = np.unravel_index(np.argmax(np.where(np.isnan(far), np.inf, far)), value.shape)
    at = f" at {[int(i) for i in place]}" if place else ""
    return (
        f"{name}{at} is {value[place].item():.6g} in Python, {other[place].item():.6g} in the trace"
    )


def _short(array: np.ndarray[Any, Any]) -> str:
    return np.array2string(array, precision=4, threshold=4, edgeitems=2).replace("\n", "")[:80]


def _refusal(
    function: SavedFunction, concrete: ConcreteFunction, inputs: Sequence[Any], what: str
) -> SaveError:
    hint = ""
    if function.sizes == "open":
        hint = (
            'Take sizes from x.shape, which computes in a trace; sizes="seen" saves for the sizes '
            "that the module was called with. "
        )
    return SaveError(
        f"{function.where}{_defined(function.python)}: for "
        f"{described(function.signature, concrete, inputs)} {what}. It may depend on something "
        "that is not an argument or a Variable (a global, NumPy's random numbers, a branch on a "
        f"value). {hint}golden=False stores a trace without comparing it."
    )


def _defined(function: Any) -> str:
    """Return where a Python function is defined, as `` (FILE:LINE)``."""
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    return "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"


# -- the op at which two runs part -----------------------------------------------------------------


class _Steps(Recorder):
    """Record every op of a run with its results and the user's line."""

    def __init__(self) -> None:
        self.records = AllRecords()
        self.steps: list[tuple[str, str, Any]] = []

    def record(self, op: Op, inputs: Any, output: Tensor, params: dict[str, Any]) -> None:
        self._note(op.name, [output])

    def record_joint(
        self, op: Op, inputs: Any, outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        self._note(op.name, outputs)

    def _note(self, name: str, outputs: Sequence[Tensor]) -> None:
        if len(self.steps) < _MOST_STEPS:
            where = user_line()
            self.steps += [(name, where, np.asarray(to_numpy(y.array))) for y in outputs]


def _parting(
    python: Any,
    concrete: ConcreteFunction,
    inputs: Sequence[np.ndarray[Any, Any]],
    variables: Sequence[Variable],
    names: dict[int, str],
) -> str:
    """Describe the first op of the Python code that has no counterpart in the trace."""
    runs = []
    for run in (python, concrete):
        steps = _Steps()
        evaluate(_watched(run, steps), concrete, inputs, variables, names, order=0)
        runs.append(steps.steps)
    constants = [to_numpy(array) for array in concrete.graph.constants.values()]
    for name, where, value in runs[0]:
        alike = [*constants, *(other for op, _, other in runs[1] if op == name)]
        if all(differs(value, np.asarray(other)) for other in alike):
            return f"; they part at op {name!r} ({where})"
    return "".join(f"; Python ends with op {name!r} ({where})" for name, where, _ in runs[0][-1:])


def _watched(run: Any, steps: Recorder) -> Any:
    def watched(*args: Any, **kwargs: Any) -> Any:
        with recording_to((*active_tapes.get(), steps)):
            return run(*args, **kwargs)

    return watched


_SIZE = 3


class KernelCheck:
    """Compares kernels of other plugins, on the host's arrays, with those of the ops."""

    def __init__(self) -> None:
        known = registry()
        self._backend = known.host_backend
        #: By op: who provides its kernel.
        self._foreign: dict[str, Any] = {}
        ours = self._backend.provider
        for name, backend in known.tables["kernels"]:
            info, op = known.owner("kernel", (name, backend)), known.ops[name]
            homes = {x.distribution for x in (op.provider, ours) if x.distribution}
            same = info is None or info is op.provider or info is ours or info.distribution in homes
            if backend == self._backend.name and not same:
                self._foreign[name] = info

    def check(self, graph: Graph, where: str) -> None:
        """Refuse a graph with an op for which a plugin of this process has a different result.

        Raises
        ------
        SaveError
            The message has the op's name and the provider of the kernel.
        """
        if not self._foreign:
            return
        for node in op_nodes(graph):
            if node.op.name in self._foreign and self._differs(node):
                raise SaveError(
                    f"{where}: op {node.op.name!r} has a kernel of {self._foreign[node.op.name]}, "
                    "whose results differ from the op's own kernel, and readers of the file "
                    "may use that one; register it as an op with another name"
                )

    def _differs(self, node: Node) -> bool:
        op = node.op
        assert isinstance(op, Op)
        random = np.random.default_rng(0)
        arrays = [_sample(x, random) if type(x) is Symbol else x for x in node.inputs]
        try:
            given, params = node.settled(arrays)
            with np.errstate(all="ignore"):
                own = self._backend.bind(op.kernel)(*given, **params)
                other = op.kernel_for(self._backend)(*given, **params)
        except Exception:  # not every input fits the op; and some ops have no kernel but this
            return False
        pairs = zip(_listed(own), _listed(other), strict=False)
        return len(_listed(own)) != len(_listed(other)) or any(
            differs(np.asarray(a), np.asarray(b)) for a, b in pairs
        )


def _sample(x: Symbol, random: np.random.Generator) -> Any:
    shape = tuple(n if known_size(n) else _SIZE for n in x.shape or ())
    if x.dtype.kind in "fc":
        return np.asarray(random.standard_normal(shape)).astype(x.dtype)
    return np.asarray(random.integers(0, 2, shape)).astype(x.dtype)


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]
