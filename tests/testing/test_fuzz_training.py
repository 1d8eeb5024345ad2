"""The fuzzer of training: a short run of it, and that it finds what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzz.commands import main
from fuzz.training import RELATIONS, Line, Program, held, hold, relation
from fuzz.training.relations import differs

import gradtape as gt
from gradtape import layers as L
from gradtape import training as tr

KINDS = ("batches", "loaded", "wrapped", "resumed", "undisturbed", "seeded", "identity")


def off(kind: str, seeds: range) -> dict[str, str]:
    """Return what is wrong with the programs of a class or a relation."""
    found = {}
    for name, kept in RELATIONS.items():
        for seed in seeds if kind in (name, kept.kind) else ():
            outcome, said = held(kept, kept.drawn(seed))
            found |= {f"{name} {seed}": said} if outcome == "off" else {}
    return found


def test_every_class_has_relations() -> None:
    assert {kept.kind for kept in RELATIONS.values()} == set(KINDS)


@pytest.mark.parametrize("name", RELATIONS)
def test_random_programs_keep_the_relation(name: str) -> None:
    assert off(name, range(2)) == {}


def test_the_same_seed_draws_the_same_program() -> None:
    kept = RELATIONS["batches.sizes"]
    assert kept.drawn(7) == kept.drawn(7)
    assert kept.drawn(7) != kept.drawn(8)


def test_few_programs_are_refused() -> None:
    kept = RELATIONS["batches.predictions"]
    assert [held(kept, kept.drawn(seed))[0] for seed in range(20)].count("held") >= 18


# -- what is wrong is found ------------------------------------------------------------------------


def of_batches(right: Any) -> Any:
    """``evaluate`` that takes the mean of the batches' means, however long they are."""

    def evaluate(model, data, batch_size=32, **goals):
        rows = range(0, len(data[0]), batch_size)
        if not isinstance(data, tuple) or len(rows) < 2 or isinstance(data[1], dict):
            return right(model, data, **goals)
        cut = [tuple(part[i : i + batch_size] for part in data) for i in rows]
        found = [right(model, batch, **goals) for batch in cut]
        return {name: float(np.mean([each[name] for each in found])) for name in found[0]}

    return evaluate


def without_penalties(right: Any) -> Any:
    """``load`` that forgets the regularizers of kernels."""

    def load(path, **options):
        model = right(path, **options)
        for module in model.submodules:
            vars(module).pop("kernel_regularizer", None)
        return model

    return load


def in_training(right: Any) -> Any:
    """A call that always trains."""
    return lambda self, x, training=False, mask=None: right(self, x, training=True, mask=mask)


def moving(right: Any) -> Any:
    """``predict`` that updates states."""
    return lambda model, x, **options: model(x, training=True)


def forgets(right: Any) -> Any:
    """``load_state_dict`` that does nothing."""
    return lambda self, state: None


def unread(right: Any) -> Any:
    """``load_weights`` that does nothing."""
    return lambda self, *args, **options: None


def unseeded(right: Any) -> Any:
    """``set_seed`` that does nothing."""
    return lambda seed: None


DEFECTS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "batches.sizes": (tr, "evaluate", of_batches),
    "loaded.saved": (gt, "load", without_penalties),
    "wrapped.time_distributed": (L.TimeDistributed, "__call__", in_training),
    "resumed.interrupted": (tr.ReduceLROnPlateau, "load_state_dict", forgets),
    "undisturbed.predict": (tr, "predict", moving),
    "seeded.by_set_seed": (gt.random, "set_seed", unseeded),
    "identity.weights": (gt.Module, "load_weights", unread),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holder, attribute, defect = DEFECTS[name]
    kept, wrong = RELATIONS[name], defect(getattr(holder, attribute))
    for seed in range(60):
        program = kept.drawn(seed)
        with monkeypatch.context() as patched:
            patched.setattr(holder, attribute, wrong)
            found = held(kept, program)[0] == "off"
        if found and held(kept, program)[0] == "held":
            return
    pytest.fail("60 programs have not shown it")


def test_a_failure_is_reduced_and_printed_as_a_program(monkeypatch, capsys) -> None:
    monkeypatch.setattr(tr, "predict", lambda model, x, **options: 2.0 * model(x))
    options = ["--seed", "3", "--examples", "1", "--relation", "batches.predictions"]
    assert main(["training", *options]) == 1
    said = capsys.readouterr().out
    assert "--relation batches.predictions --seed 3: predict, batch_size=1: " in said
    assert "batches off 1" in said
    scope: dict[str, Any] = {}
    program = said[said.index("from fuzz") : said.index('"""))') + 5]
    exec(program.replace("print(", "result = ("), scope)
    assert scope["result"][0] == "off"


def test_a_raw_error_is_a_failure_and_a_clear_one_a_refusal() -> None:
    program = "x = numbers((2, 3), 1)\nmodel = lambda: L.Sequential([ITEMS])"
    assert hold("batches.predictions", program.replace("ITEMS", "L.Dense(2)"))[0] == "held"
    unknown = program.replace("ITEMS", "L.Activation('no such')")
    assert hold("batches.predictions", unknown)[0] == "refused"
    raw = program.replace("ITEMS", "lambda x: x.no_such_name")
    assert hold("batches.predictions", raw)[0] == "off"


def test_a_relation_is_added_by_its_function(monkeypatch) -> None:
    monkeypatch.setattr("fuzz.training.relations.RELATIONS", RELATIONS.copy())

    @relation("mine", lambda rng: Program({"n": Line(str(rng.randint(2, 2)))}))
    def twice(p):
        """Twice is plus itself."""
        yield "twice", 2 * p.n, p.n + p.n

    from fuzz.training import relations

    assert held(relations.RELATIONS["mine.twice"], Program({"n": Line("2")})) == ("held", "")


@pytest.mark.parametrize(
    ("got", "want", "exact"),
    [
        ({1: 2}, {"1": 2}, True),
        ([1], (1,), True),
        (1.0, 1, True),
        (np.zeros(2), np.zeros(3), False),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.1]}, False),
        (None, 0, True),
        (float("nan"), 0.0, False),
    ],
    ids=str,
)
def test_values_that_differ(got: Any, want: Any, exact: bool) -> None:
    assert differs(got, want, exact)
    assert not differs(want, want, exact)
