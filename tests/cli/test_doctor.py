"""``gradtape doctor``: what it tells of versions, cores, threads, backends and executors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.cli import doctor, main
from gradtape.core.extend import quota

HERE: dict[str, Any] = {
    "cores": {"machine": 8, "allowed": 4, "quota": None, "load": 0.5},
    "blas": [{"internal_api": "openblas", "version": "0.3", "num_threads": 4}],
    "executors": {"plain": None},
}


def product(median: float, mean: float) -> dict[str, Any]:
    return {
        "one": {"median_us": 100.0, "mean_us": 100.0, "worst_us": 120.0},
        "all": {"median_us": median, "mean_us": mean, "worst_us": 9000.0},
    }


def test_it_tells_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--no-measure"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"gradtape {gt.__version__}" in told
    assert "numpy: ready" in told
    assert "plain: ready" in told
    assert "of them for this process" in told
    assert "gradtape's threads: " in told
    assert "takes" not in told


def test_as_json_it_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["packages"]["gradtape"] == gt.__version__
    assert found["backends"]["numpy"] is None
    assert found["product"]["one"]["median_us"] > 0
    assert found["product"]["all"]["worst_us"] >= found["product"]["all"]["median_us"]
    assert set(found["executors"]) == set(gt.registry().executors)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"product": product(110.0, 130.0)}, None),
        (
            {"product": product(250.0, 900.0)},
            "take 9.0 times as long on average as with one: ",
        ),
        # usually faster, and on the whole slower, or faster
        ({"product": product(60.0, 300.0)}, "take 3.0 times as long on average as with one, al"),
        ({"product": product(60.0, 80.0)}, None),
        ({"cores": {**HERE["cores"], "quota": 1.5}}, "4 threads, but this process has 1.5 cores"),
        ({"cores": {**HERE["cores"], "allowed": 2}}, "4 threads, but this process has 2 cores"),
        ({"cores": {**HERE["cores"], "quota": 2.5}}, "Set OMP_NUM_THREADS=2 before Python starts"),
        (
            {"blas": [{"internal_api": "blas", "version": None, "num_threads": None}]},
            r'pip install "gradtape[threads]"',
        ),
        ({"executors": {"fused": "llvmlite is not installed"}}, "could run faster"),
        ({"environment": {"GRADTAPE_EXECUTOR": "planed"}}, "'planed', which is not an executor"),
        ({"environment": {"GRADTAPE_EXECUTOR": "plain"}}, None),
    ],
)
def test_advice_follows_from_what_was_found(change: dict[str, Any], said: str | None) -> None:
    advice = doctor._advice({**HERE, **change})
    if said is None:
        assert advice == []
    else:
        (told,) = advice
        assert said in told


@pytest.mark.parametrize(
    ("text", "cores"), [("max 100000\n", None), ("150000 100000\n", 1.5), ("nonsense", None)]
)
def test_the_quota_of_a_container_is_read(text: str, cores: float | None, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert quota(str(tmp_path)) == cores
    assert quota(str(tmp_path / "absent")) is None


@pytest.mark.parametrize(("limit", "cores"), [("-1", None), ("50000", 0.5), ("?", None)])
def test_the_quota_of_an_older_container_is_read(
    limit: str, cores: float | None, tmp_path: Path
) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(f"{limit}\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert quota(str(tmp_path)) == cores


def test_without_threadpoolctl_it_tells_what_numpy_was_built_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "threadpoolctl", None)
    assert main(["doctor", "--no-measure"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "threads: ?" in told
    assert 'pip install "gradtape[threads]"' in told


# -- what plugins report ---------------------------------------------------------------------------


def acme() -> dict[str, Any]:
    return {
        "lines": ["a fast one", "and a slow one"],
        "advice": ["Turn the slow one off."],
        "packages": {"json": ["acme-json", "gradtape"], "acme_absent": "acme-absent"},
        "variables": ["ACME_MODE", "ACME_OTHER"],
        "devices": 2,
    }


def failing() -> dict[str, Any]:
    raise KeyError("acme")


@pytest.fixture
def register() -> Iterator[Callable[[Any], None]]:
    def given(diagnoses: Any) -> None:
        plugin = SimpleNamespace(gradtape_diagnoses=gt.hookimpl(lambda: diagnoses))
        gt.register_plugin(plugin, "acme")

    yield given
    gt.unregister_plugin("acme")


def test_a_plugin_adds_a_section_packages_and_variables(
    register: Callable[[Any], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ACME_MODE", "fast")
    register({"acme": acme})
    found = doctor.diagnosis(measure=False)
    assert found["sections"]["acme"]["devices"] == 2
    assert found["packages"]["acme-json"] == gt.__version__
    assert found["packages"]["acme-absent"] is None
    assert found["environment"]["ACME_MODE"] == "fast"
    assert "ACME_OTHER" not in found["environment"]
    assert main(["doctor", "--no-measure"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "acme         a fast one" in lines
    assert "             and a slow one" in lines
    assert "* Turn the slow one off." in lines


def test_a_restricted_openblas_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    assert "OPENBLAS_CORETYPE" not in doctor.doctor_text(measure=False)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    found = doctor.diagnosis(measure=False)
    assert found["environment"]["OPENBLAS_CORETYPE"] == "Haswell"
    (advice,) = [x for x in found["advice"] if "OPENBLAS_CORETYPE" in x]
    assert "Unset the variable" in advice


@pytest.mark.needs("plugins.fused")
def test_a_plugin_replaces_a_section(register: Callable[[Any], None]) -> None:
    assert "path" in doctor.diagnosis(measure=False)["sections"]["cache"]
    register({"cache": acme})
    assert doctor.diagnosis(measure=False)["sections"]["cache"]["devices"] == 2


@pytest.mark.needs("plugins.fused")
@pytest.mark.parametrize(
    ("diagnose", "said"),
    [
        (failing, "KeyError: 'acme'"),
        (lambda: {"lines": "one"}, "TypeError: 'lines' is str"),
        (lambda: {"data": object()}, "TypeError"),
        (lambda: None, "TypeError"),
    ],
)
def test_a_section_that_fails_is_named(
    diagnose: Any, said: str, register: Callable[[Any], None]
) -> None:
    register({"acme": diagnose})
    found = doctor.diagnosis(measure=False)
    (advice,) = [x for x in found["advice"] if "'acme'" in x]
    assert advice.startswith("plugin 'acme' cannot report 'acme': ")
    assert said in advice
    assert "cache" in found["sections"]


@pytest.mark.needs("export", "plugins.cupy", "plugins.fused", "plugins.jax")
def test_every_plugin_of_ours_lists_its_own_packages() -> None:
    found = doctor.diagnosis(measure=False)
    names = "gradtape numpy threadpoolctl jax cupy scipy llvmlite pluggy h5py xxhash onnx"
    assert set(found["packages"]) >= {*names.split(), "matplotlib", "scikit-learn"}
    assert found["packages"]["numpy"] == np.__version__
