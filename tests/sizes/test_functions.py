"""Functions that compute with sizes mean the same eagerly, traced, batched, and loaded elsewhere.

The functions are those of ``functions.py``. What is compared are values, gradients and gradients of
gradients.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import probe, run_isolated
from functions import CASES, GENERATOR, Case

import gradtape as gt

SIZES = (0, 1, 2, 3, 7)

every_function = pytest.mark.parametrize("name", CASES)


class Holder(gt.Module):
    """Has a function as its method ``run``, and what functions draw from."""

    def __init__(self, run: Any) -> None:
        super().__init__()
        self.generator = GENERATOR
        self.run = run


def traced(name: str, dtype: str = "float64") -> Any:
    case = CASES[name]
    return gt.function(case.function, input_signature=case.specs(dtype))


def found_by(function: Any, inputs: list[Any]) -> list[np.ndarray]:
    """Return values, gradients and gradients of gradients."""
    return quietly(lambda *xs: probe(Holder(function), "run", xs, {}), inputs)


def assert_close(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        if (0,) in (got.shape, want.shape) and not (got.any() or want.any()):
            continue  # no gradient is as good as one of zeros
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        tolerance = 1e-10 if want.dtype != "float32" else 2e-4
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@every_function
def test_one_trace_gives_what_eager_code_gives_at_every_size(name: str) -> None:
    case, function = CASES[name], traced(name)
    for n in SIZES:
        if n in case.refused:
            refusal = refusal_of(case.function, case.inputs(n))
            assert refusal is not None
            assert refusal_of(function, case.inputs(n)) is refusal
        else:
            inputs = case.inputs(n)
            assert_close(found_by(function, inputs), found_by(case.function, inputs))
    assert len(function.concrete_functions) == 1


def refusal_of(function: Any, inputs: list[Any]) -> type | None:
    """Return what a function raises."""
    try:
        function(*map(gt.constant, inputs))
    except (ValueError, IndexError, ZeroDivisionError) as error:
        return type(error)
    return None


@every_function
def test_a_trace_has_the_dtypes_of_eager_code(name: str) -> None:
    case = CASES[name]
    inputs = case.inputs(3, "float32")
    expected = found_by(case.function, inputs)
    assert_close(found_by(traced(name, "float32"), inputs), expected)


@every_function
def test_examples_in_a_batch_give_what_a_loop_over_them_gives(name: str) -> None:
    case = CASES[name]
    alone = slopes_of(case, case.function)
    batches = {
        "eager": gt.vmap(alone, randomness="same"),
        "of a trace": gt.vmap(slopes_of(case, traced(name)), randomness="same"),
    }
    batches["traced"] = gt.function(batches["eager"], input_signature=case.specs(examples=True))
    for n in set(SIZES) - set(case.refused):
        inputs = [gt.constant(x) for x in case.inputs(n, examples=2)]
        rows = [quietly(alone, [x[i] for x in inputs]) for i in range(2)]
        expected = [np.stack([x.numpy() for x in column]) for column in zip(*rows, strict=True)]
        for batch in batches.values():
            assert_close([x.numpy() for x in quietly(batch, inputs)], expected)
    assert len(batches["traced"].concrete_functions) == 1


def slopes_of(case: Case, run: Any) -> Any:
    """Return a function of values, gradients, and gradients of the sum of their squares."""
    places = tuple(i for i in range(len(case.shapes)) if i not in case.integers)

    def target(*xs: Any) -> Any:
        return sum(gt.sum(gt.sin(1.5 * y)) for y in leaves(run(*xs)))

    def steepness(*xs: Any) -> Any:
        return sum(gt.sum(g**2) for g in gt.grad(target, argnums=places)(*xs))

    def slopes(*xs: Any) -> list[Any]:
        first, second = (gt.grad(f, argnums=places)(*xs) for f in (target, steepness))
        return [*leaves(run(*xs)), *first, *second]

    return slopes


def quietly(function: Any, inputs: list[Any]) -> Any:
    """Return a result whatever it divides by, from the same random numbers each time."""
    GENERATOR.set_seed(7)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a variance of one number divides by 0
        return function(*inputs)


def leaves(tree: Any) -> list[Any]:
    return list(tree) if isinstance(tree, (tuple, list)) else [tree]


@every_function
def test_jacobians_and_forward_mode_of_a_trace_are_those_of_eager_code(name: str) -> None:
    case = CASES[name]
    eager, trace = derivatives_of(case, case.function), derivatives_of(case, traced(name))
    for n in (1, 3):
        inputs = [gt.constant(x) for x in case.inputs(n)]
        expected, found = quietly(eager, inputs), quietly(trace, inputs)
        assert_close(expected["jacfwd"], expected["jacrev"])
        for kind in expected:
            assert_close(found[kind], expected[kind])


def derivatives_of(case: Case, run: Any) -> Any:
    places = [i for i in range(len(case.shapes)) if i not in case.integers]
    argnums = tuple(range(len(places)))

    def derivatives(*inputs: Any) -> dict[str, list[Any]]:
        def values(*xs: Any) -> Any:
            GENERATOR.set_seed(7)
            given = dict(zip(places, xs, strict=True))
            return tuple(leaves(run(*[given.get(i, x) for i, x in enumerate(inputs)])))

        xs = tuple(inputs[i] for i in places)
        found = {
            "jvp": gt.jvp(values, xs, tuple(gt.cos(x) for x in xs)),
            "jacrev": gt.jacrev(values, argnums)(*xs),
            "jacfwd": gt.jacfwd(values, argnums)(*xs),
        }
        return {kind: [x.numpy() for x in flat(result)] for kind, result in found.items()}

    return derivatives


def flat(tree: Any) -> list[Any]:
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in flat(part)]
    return [tree]


# -- saved, and loaded where this code is unknown --------------------------------------------------

ELSEWHERE = """
import json, warnings
warnings.simplefilter("ignore")
np.seterr(all="ignore")
folder, sizes = sys.argv[1], json.loads(sys.argv[2])
given = np.load(f"{folder}/given.npz")
results, failures = {}, {}
for name, counts in sizes.items():
    for n, count in counts:
        inputs = [given[f"{name} {n} {i}"] for i in range(count)]
        try:
            module = gt.load(f"{folder}/{name}.h5")
            module.generator.set_seed(7)
            found = probe(module, "run", inputs, {})
        except Exception as error:
            failures[f"{name} {n}"] = f"{type(error).__name__}: {error}"
            continue
        results |= {f"{name} {n} {i}": array for i, array in enumerate(found)}
np.savez(f"{folder}/results.npz", **results)
print(json.dumps(failures))
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Save every function, run all files in one bare interpreter; what it finds, or what failed."""
    folder: Path = tmp_path_factory.mktemp("functions")
    given, sizes, unsaved = {}, {}, {}
    for name, case in CASES.items():
        try:
            gt.save(Holder(traced(name)), folder / f"{name}.h5")
        except Exception as error:  # told by the test of this function
            unsaved[name] = error
            continue
        sizes[name] = [(n, len(case.shapes)) for n in SIZES]
        for n in SIZES:
            given |= {f"{name} {n} {i}": x for i, x in enumerate(case.inputs(n))}
    np.savez(folder / "given.npz", **given)
    failures = json.loads(run_isolated(ELSEWHERE, folder, json.dumps(sizes)))
    with np.load(folder / "results.npz") as file:
        results = dict(file)
    return results, failures, unsaved


@every_function
def test_a_file_gives_what_eager_code_gives_where_the_code_is_unknown(
    name: str, elsewhere: Any
) -> None:
    results, failures, unsaved = elsewhere
    if name in unsaved:
        raise unsaved[name]
    case = CASES[name]
    for n in SIZES:
        if n in case.refused:
            assert f"{name} {n}" in failures
            continue
        assert f"{name} {n}" not in failures, failures[f"{name} {n}"]
        expected = found_by(case.function, case.inputs(n))
        found = [results[f"{name} {n} {i}"] for i in range(len(expected))]
        assert_close(found, expected)
