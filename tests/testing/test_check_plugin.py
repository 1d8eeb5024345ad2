"""``check_plugin`` and ``gradtape plugins --check``: everything that a plugin provides, at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape.cli.commands import run
from gradtape.core.extend import Communicator, Engine, F, Op, plain
from gradtape.testing import Sample, check_backend, check_plugin

X = np.array([[0.5, 1.25], [0.75, 1.5]])
library = pretend_gpu.make("checked")


def cube(name: str, slope: Any, **changes: Any) -> Op:
    return Op(
        f"acme::{name}",
        lambda xp, x: x * x * x,
        gradients={"x": slope},
        infer=lambda x: (x.shape, x.dtype),
        batch="elementwise",
        **changes,
    )


class Alone(Engine):
    name = "acme"

    def connect(self, **options: Any) -> Communicator:
        return Communicator()


class Forgetful(Communicator):
    def exchange(self, message: bytes) -> list[bytes]:
        return [message[:100]]


class Forgetting(Alone):
    name = "acme-forgetting"

    def connect(self, **options: Any) -> Communicator:
        return Forgetful()


def rounding(graph: Any) -> Any:
    run = plain(graph)
    return lambda arrays: [np.round(y, 3) for y in run(arrays)]


def write(path: str, arrays: Any, metadata: Any) -> None:
    with open(path, "wb") as file:
        np.savez(file, **arrays)


class Format:
    """An object that writes and reads, whose reader is told apart from the one of gradtape."""

    def __call__(self, path: str, arrays: Any, metadata: Any) -> None:
        write(path, arrays, metadata)

    def read(self, path: str) -> Any:
        return dict(np.load(path))


class Halving(Format):
    def read(self, path: str) -> Any:
        return {k: x / 2 if x.dtype.kind in "fc" else x for k, x in np.load(path).items()}


right = cube("right", lambda g, x: g * 3.0 * x * x)
wrong = cube("wrong", lambda g, x: g * 2.0 * x * x)
bare = cube("bare", lambda g, x: g * F.square(x))


def hooks(**results: Any) -> SimpleNamespace:
    made = {f"gradtape_{k}": gt.hookimpl(lambda v=v: v) for k, v in results.items()}
    return SimpleNamespace(**made)


@pytest.fixture
def plugged() -> Iterator[Callable[..., None]]:
    """What registers a plugin called "acme"."""

    def register(**results: Any) -> None:
        gt.register_plugin(hooks(**results), "acme")

    yield register
    gt.unregister_plugin("acme")


# parts of a plugin: (what its hooks return, the row of the report, what it says if it is wrong)
PARTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "op": ({"ops": [right], "samples": {right.name: [Sample(X)]}}, "op acme::right", ""),
    "wrong op": (
        {"ops": [wrong], "samples": {wrong.name: [Sample(X)]}},
        "op acme::wrong",
        "acme::wrong, Sample(float64[2, 2]), gradients: order 1",
    ),
    "kernel": ({"kernels": {("sin", "numpy"): np.sin}}, "kernel of sin for numpy", ""),
    "wrong kernel": (
        {"kernels": {("sin", "numpy"): lambda x: np.sin(x) * 1.001}},
        "kernel of sin for numpy",
        "instead of the portable kernel's",
    ),
    "executor": ({"executors": {"acme": plain}}, "executor acme", ""),
    "wrong executor": ({"executors": {"acme": rounding}}, "executor acme", "elementwise: result 0"),
    "engine": ({"collectives": [Alone()]}, "engine acme", ""),
    "wrong engine": (
        {"collectives": [Forgetting()]},
        "engine acme-forgetting",
        "exchange, 1 rank: rank 0: exchange of [100000] bytes returned [100] bytes",
    ),
    "format": ({"formats": {".acme": Format()}}, "format .acme", ""),
    "wrong format": ({"formats": {".acme": Halving()}}, "format .acme", "'x' has other values"),
}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_checked(part: str, plugged: Any) -> None:
    provided, row, says = PARTS[part]
    plugged(**provided)
    report = check_plugin("acme", show=False)
    if not says:
        assert row in report.passed, str(report)
        assert not report.wrong
    else:
        assert says in report.wrong.get(row, ""), str(report)


def test_a_backend_is_checked_on_the_samples_of_everyone(plugged: Any) -> None:
    backend = pretend_gpu.Plugin("checked")
    gt.register_plugin(backend, "checked")
    try:
        plugged(ops=[right], samples={right.name: [Sample(X)]})
        report = check_backend("checked", only=["acme::right", "sin"], show=False)
        assert report.passed == ["acme::right", "sin"]
    finally:
        gt.unregister_plugin("checked")


def test_what_has_no_samples_is_listed_as_unchecked(plugged: Any) -> None:
    plugged(ops=[bare], commands={"acme": lambda parser: None})
    report = check_plugin("acme", show=False)
    assert report.passed == ["loading"]
    assert "provide them by the hook gradtape_samples" in report.unchecked["op acme::bare"]
    assert report.unchecked["commands"].startswith("1: there is no check of commands")


def test_samples_of_an_op_that_is_missing_are_refused(plugged: Any) -> None:
    plugged(samples={"acme::gone": [Sample(X)]})
    report = check_backend("numpy", only=["acme::gone"], show=False)
    assert "no plugin provides the op 'acme::gone'" in report.refused["acme::gone"]
    report = check_plugin("acme", show=False)
    assert report.wrong == {"samples of acme::gone": "no plugin provides this op"}


def test_samples_of_an_op_that_is_misspelt_are_wrong(plugged: Any) -> None:
    plugged(ops=[right], samples={"acme::rigth": [Sample(X)], "gt.median": [Sample(X)]})
    report = check_plugin("acme", show=False)
    assert list(report.wrong) == ["samples of acme::rigth"]
    assert "near names: acme::right" in report.wrong["samples of acme::rigth"]


def test_names_that_nothing_looks_up_are_wrong_if_others_are_near(plugged: Any) -> None:
    def lower(lowering: Any, node: Any) -> bool:
        return False

    plugged(
        lowerings={("sin", "plannd"): lower, ("sin", "planned"): lower, ("sin", "acme"): lower},
        services={"saving.pickle_tensr": len, "acme.own": len},
    )
    wrong = check_plugin("acme", show=False).wrong
    assert list(wrong) == ["target plannd", "service saving.pickle_tensr"]
    assert wrong["target plannd"] == "nothing looks up this name; near names: planned"
    assert "near names: saving.pickle_tensor" in wrong["service saving.pickle_tensr"]


def test_the_command_prints_a_report(plugged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    plugged(ops=[right, bare], samples={right.name: [Sample(X)]})
    assert run(["plugins", "--check", "acme"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("plugin 'acme': 2 parts in ")
    assert rest[0].startswith("unchecked  op acme::bare  it has no samples")


def test_the_command_exits_with_1_if_something_is_wrong(
    plugged: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    plugged(ops=[wrong], samples={wrong.name: [Sample(X)]}, executors={"acme": plain})
    assert run(["plugins", "--check", "acme", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert list(told["wrong"]) == ["op acme::wrong"]
    assert told["passed"] == ["loading", "executor acme"]
    assert told["parts"][0]["kind"] == "executor"


def test_a_name_that_is_none_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plugins", "--check", "acmé"]) == 2
    assert "there is no plugin 'acmé'; there are: " in capsys.readouterr().err
