"""Functions that compute with sizes mean the same eagerly, traced, batched, and loaded elsewhere.

The functions are those of ``functions.py``. What is compared are values, gradients and gradients of
gradients.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import probe, run_isolated
from functions import CASES, GENERATOR

import gradtape as gt

SIZES = (0, 1, 2, 3, 7)

every_function = pytest.mark.parametrize("name", CASES)


class Holder(gt.Module):
    """Has a function as its method ``run``, as ``probe`` takes it, and what the functions draw from."""

    def __init__(self, run: Any) -> None:
        super().__init__()
        self.generator = GENERATOR
        self.run = run


def traced(name: str, dtype: str = "float64") -> Any:
    case = CASES[name]
    return gt.function(case.function, input_signature=case.specs(dtype))


def found_by(function: Any, inputs: list[Any]) -> list[np.ndarray]:
    """Return values, gradients and gradients of gradients."""
    GENERATOR.set_seed(7)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a variance of one number divides by 0
        return probe(Holder(function), "run", inputs, {})


def assert_close(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        tolerance = 1e-10 if want.dtype != "float32" else 2e-4
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@every_function
def test_one_trace_gives_what_eager_code_gives_at_every_size(name: str) -> None:
    case, function = CASES[name], traced(name)
    for n in SIZES:
        if n in case.refused:
            with pytest.raises(Exception) as eager:
                case.function(*map(gt.constant, case.inputs(n)))
            with pytest.raises(eager.type):
                function(*case.inputs(n))
        else:
            inputs = case.inputs(n)
            assert_close(found_by(function, inputs), found_by(case.function, inputs))
    assert len(function.concrete_functions) == 1


@every_function
def test_a_trace_has_the_dtypes_of_eager_code(name: str) -> None:
    case = CASES[name]
    inputs = case.inputs(3, "float32")
    expected = found_by(case.function, inputs)
    assert_close(found_by(traced(name, "float32"), inputs), expected)


@every_function
def test_examples_in_a_batch_give_what_a_loop_over_them_gives(name: str) -> None:
    case, function = CASES[name], traced(name)
    for n in set(SIZES) - set(case.refused):
        inputs = [gt.constant(x) for x in case.inputs(n, examples=2)]
        alone = [[x[i] for x in inputs] for i in range(2)]
        places = tuple(i for i in range(len(inputs)) if i not in case.integers)

        def slopes(*xs: Any, run: Any, places: Any = places) -> Any:
            def target(*xs: Any) -> Any:
                return sum(gt.sum(gt.sin(1.5 * y)) for y in leaves(run(*xs)))

            first = gt.grad(target, argnums=places)

            def steepness(*xs: Any) -> Any:
                return sum(gt.sum(g**2) for g in first(*xs))

            return [*leaves(run(*xs)), *first(*xs), *gt.grad(steepness, argnums=places)(*xs)]

        for run in (case.function, function):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = []
                for row in alone:
                    GENERATOR.set_seed(7)
                    rows.append(slopes(*row, run=case.function))
                GENERATOR.set_seed(7)
                batch = gt.vmap(slopes_of(slopes, run), randomness="same")(*inputs)
            expected = [np.stack([x.numpy() for x in column]) for column in zip(*rows, strict=True)]
            assert_close([x.numpy() for x in batch], expected)


def slopes_of(slopes: Any, run: Any) -> Any:
    return lambda *xs: slopes(*xs, run=run)


def leaves(tree: Any) -> list[Any]:
    return list(tree) if isinstance(tree, (tuple, list)) else [tree]


@every_function
def test_jacobians_and_forward_mode_of_a_trace_are_those_of_eager_code(name: str) -> None:
    case, function = CASES[name], traced(name)
    places = tuple(i for i in range(len(case.shapes)) if i not in case.integers)
    for n in (1, 3):
        inputs = [gt.constant(x) for x in case.inputs(n)]
        tangents = [gt.cos(inputs[i]) for i in places]
        found = []
        for run in (case.function, function):

            def values(*xs: Any, run: Any = run, inputs: Any = inputs) -> Any:
                whole = list(inputs)
                for i, x in zip(places, xs, strict=True):
                    whole[i] = x
                GENERATOR.set_seed(7)
                return tuple(leaves(run(*whole)))

            some = tuple(inputs[i] for i in places)
            argnums = tuple(range(len(some)))
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = [
                    gt.jvp(values, some, tuple(tangents)),
                    gt.jacrev(values, argnums=argnums)(*some),
                    gt.jacfwd(values, argnums=argnums)(*some),
                ]
            found.append([[x.numpy() for x in flat(result)] for result in results])
        eager, trace = found
        assert_close(eager[2], eager[1])
        for got, want in zip(trace, eager, strict=True):
            assert_close(got, want)


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
    import json

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
