"""What was registered, seeded or frozen where a module was saved is so where it is loaded."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import assert_same_bits, run_isolated
from odd_modules import CASES, with_rules

import gradtape as gt

BATCHES = (1, 2, 3, 7)

# Upstream gradients in the place of a loss: here a loss would have the rules that were replaced.
PROBE = """
def third(module, x):
    def weights(tensors):
        return [gt.constant(np.cos(np.arange(y.size) + i).reshape(y.shape), dtype=y.dtype)
                for i, y in enumerate(tensors)]

    function = getattr(module, "f", module)
    x = gt.constant(x)
    sources = [x, *module.trainable_variables]
    tapes = [gt.GradientTape(persistent=True) for _ in range(3)]
    found = []
    with tapes[0]:
        tapes[0].watch(x)
        with tapes[1]:
            tapes[1].watch(x)
            with tapes[2]:
                tapes[2].watch(x)
                targets = [function(x)]
            found += targets
            targets = tapes[2].gradient(targets, sources, output_gradients=weights(targets))
            found += targets
            targets = [g for g in targets if g is not None]
        if targets:
            targets = tapes[1].gradient(targets, sources, output_gradients=weights(targets))
            found += targets
            targets = [g for g in targets if g is not None]
    if targets:
        found += tapes[0].gradient(targets, sources, output_gradients=weights(targets))
    return [np.zeros(0) if y is None else y.numpy() for y in found]

def inputs(dtype, complex, batch):
    random = np.random.default_rng(batch)
    x = random.standard_normal((batch, 3)) * 0.5 + 0.3
    if complex:
        return (x + 1j * random.standard_normal((batch, 3)) * 0.5).astype("complex64")
    return x.astype(dtype)

def all_batches(module, dtype, complex):
    gt.random.set_seed(3)
    return [y for batch in (1, 2, 3, 7) for y in third(module, inputs(dtype, complex, batch))]
"""
_here: dict[str, Any] = {"gt": gt, "np": np}
exec(PROBE, _here)

KEPT = [name for name, case in CASES.items() if not case.refused]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any, Any]]:
    """Save every module, measure it here and, loaded, in one fresh process."""
    folder = tmp_path_factory.mktemp("odd")
    here = {}
    kept = [(name, CASES[name]) for name in KEPT]
    for name, case in kept:
        with with_rules(case.rules), warnings.catch_warnings(action="ignore"):
            module = case.make()
            gt.save(module, folder / f"{name}.h5")
            here[name] = _here["all_batches"](module, case.dtype, case.complex)
    run_isolated(
        PROBE + "for name, dtype, complex, sums in eval(sys.argv[2]):\n"
        "    found = all_batches(gt.load(f'{sys.argv[1]}/{name}.h5'), dtype, complex)\n"
        "    np.savez(f'{sys.argv[1]}/{name}.npz', *found)\n"
        # in the process that is there: another one for each file would take most of the time
        "    limits = {'max_memory': np.inf, 'max_seconds': np.inf}\n"
        "    report = gt.saving.verify(f'{sys.argv[1]}/{name}.h5', **limits)\n"
        "    assert report.ok or sums, (name, report.table())\n",
        folder,
        [
            # golden vectors are gradients of a sum that these ops make
            (name, case.dtype, case.complex, bool({"multiply", "sum"} & set(case.rules)))
            for name, case in kept
        ],
    )
    there = {name: list(np.load(folder / f"{name}.npz").values()) for name in KEPT}
    return {name: (folder / f"{name}.h5", here[name], there[name]) for name in KEPT}


@pytest.mark.parametrize("name", KEPT)
def test_values_and_three_orders_are_the_same_bits(name: str, measured: Any) -> None:
    _, here, there = measured[name]
    assert_same_bits(there, here)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.refused])
def test_what_no_file_can_hold_is_refused_by_name(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    with with_rules(case.rules):
        with pytest.raises(gt.saving.SaveError, match=case.refused):
            gt.save(case.make(), tmp_path / "odd.h5")
        assert not (tmp_path / "odd.h5").exists()
        gt.save(case.make(), tmp_path / "odd.h5", custom_gradients=False, golden=False)
    x = gt.ones((2, 3))
    loaded = gt.load(tmp_path / "odd.h5")
    assert loaded.f(x).shape is not None
    with pytest.raises(gt.errors.GradientError, match="does not keep"):
        gt.grad(lambda x: gt.sum(loaded.f(x)))(x)
