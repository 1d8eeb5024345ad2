"""All samples of ops and functions, run by each executor: values and gradients are the eager ones.

Values of elementwise ops may differ by two units in the last place; what sums may sum in another
order. Infinities, nan and the signs of zeros are the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from executing import NAMES, OFTEN, all_close, differences, within_ulps
from table import FUNCTIONS, SAMPLES, as_called

import gradtape as gt
from gradtape.core.extend import SCALARS
from gradtape.testing import Sample

SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -3e38, 0.5, -1.25]


def runner(op: Callable[..., Any], sample: Sample) -> Callable[[Sequence[Any]], tuple[Any, Any]]:
    """Return a function of a sample's arrays, as a list, that returns results and gradients."""

    def run(tensors: Sequence[Any]) -> tuple[Any, Any]:
        rest = iter(tensors)
        given = [x if type(x) in SCALARS else next(rest) for x in sample.inputs]
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        with gt.GradientTape() as tape:
            tape.watch(sources)
            fed = sample.feed(*given)
            found = op(*(fed if isinstance(fed, tuple) else (fed,)), **sample.params)
            shown = sample.view(*(found if isinstance(found, (list, tuple)) else [found]))
            results = list(shown) if isinstance(shown, (list, tuple)) else [shown]
        followed = [y for y in results if y.dtype.kind in "fc"]
        if not followed or not sources:
            return results, []
        return results, tape.gradient(followed, sources, unconnected_gradients="zero")

    return run


def as_special(x: Any) -> Any:
    """Return an array in single precision, with numbers at which kernels tend to differ."""
    if x.dtype.kind not in "fc":
        return x
    made = x.astype("complex64" if x.dtype.kind == "c" else "float32")
    flat = made.reshape(-1)
    for i in range(0, flat.size, 2):
        flat[i] = SPECIAL[i // 2 % len(SPECIAL)]
    return flat.reshape(x.shape)


#: What becomes of the arrays of a sample.
FORMS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x,
    "single": lambda x: x.astype("float32") if x.dtype.kind == "f" else x,
    "special": as_special,
    "empty": lambda x: x[:0] if x.ndim else x,
    "turned": lambda x: np.ascontiguousarray(x.T).T,
    "large": lambda x: np.concatenate([x] * 300, axis=-1) if x.ndim else x,
}


def outcome(run: Callable[[], Any]) -> Any:
    """Return what a run gives, or the error that it raises."""
    try:
        return run()
    except Exception as error:
        return error


def check(op: Callable[..., Any], sample: Sample, form: str, name: str, exact: bool) -> str | None:
    """Compare a sample in one form with the eager run; say what differs.

    A trace may refuse what depends on values, and cannot raise where an eager run looks at them:
    then the plain executor is the reference.
    """
    arrays = [FORMS[form](x) for x in sample.inputs if type(x) not in SCALARS]
    tensors = [gt.constant(x) for x in arrays]
    run = runner(op, sample)
    traced = gt.function(run)
    with gt.executor("plain"):
        plain = outcome(lambda: traced(tensors))
    with gt.executor(name):
        found = outcome(lambda: [traced(tensors) for _ in range(OFTEN)][-1])
    if isinstance(plain, Exception) or isinstance(found, Exception):
        same = type(found) is type(plain) and str(found) == str(plain)
        return None if same else f"{form}: {found!r} instead of {plain!r}"
    wanted = outcome(lambda: run(tensors))
    if isinstance(wanted, Exception):
        wanted = plain
    said = differences(found[0], wanted[0], within_ulps if exact else all_close)
    said += [f"gradient {x}" for x in differences(found[1], wanted[1], all_close)]
    said += [f"input {x}" for x in differences([x.numpy() for x in tensors], arrays)]
    return f"{form}: {said}" if said else None


def faults(op: Any, samples: Sequence[Sample], name: str, exact: bool) -> list[str]:
    forms = [form for form in FORMS if exact or form in ("as it is", "single", "special")]
    forms = ["special"] if name == "fused" else forms
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in samples:
            for form in forms:
                said = check(op, sample, form, name, exact)
                if said:
                    found.append(f"{sample!r}, {said}"[:600])
    return found


def elementwise(op: str) -> bool:
    return gt.registry().ops[op].batch == "elementwise"


# each loop takes a compiler a fifth of a second
OPS = [(name, op) for name in NAMES for op in sorted(SAMPLES) if name != "fused" or elementwise(op)]


@pytest.mark.parametrize(("name", "op"), OPS)
def test_an_op_gives_what_it_gives_eagerly(name: str, op: str) -> None:
    assert faults(gt.registry().ops[op], SAMPLES[op], name, elementwise(op)) == []


#: What draws other numbers each time.
RANDOM = {"nn.dropout"}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "fused"])
@pytest.mark.parametrize("function", sorted(FUNCTIONS.keys() - RANDOM))
def test_a_function_gives_what_it_gives_eagerly(name: str, function: str) -> None:
    assert faults(as_called(function), FUNCTIONS[function], name, exact=False) == []
