"""The demo, as a user runs it: digits are learnt, the file verifies, the curves are drawn."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradtape as gt


def demo(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gradtape", "demo", "--out", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MPLBACKEND": "Agg", **environment},
    )


@pytest.mark.needs("datasets", "plot")
def test_it_trains_saves_verifies_and_draws(tmp_path: Path) -> None:
    run = demo(tmp_path / "out")
    assert run.returncode == 0, run.stderr
    accuracy = re.search(r"accuracy on the test images: ([\d.]+)%", run.stdout)
    assert accuracy is not None
    assert float(accuracy[1]) >= 97.0
    assert "6 of 6 samples verified" in run.stdout
    stopped = re.search(r"stopped early after epoch (\d+): .* since epoch (\d+) ", run.stdout)
    assert stopped is not None
    assert int(stopped[1]) == int(stopped[2]) + 5
    assert (tmp_path / "out" / "best.weights.h5").exists()
    # a path of any length apart, it fits a terminal of 80 columns
    lines = run.stdout.replace(str(tmp_path), "").splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert (tmp_path / "out" / "training.png").read_bytes().startswith(b"\x89PNG")
    assert "custom gradient clip_gradient" in gt.saving.inspect_text(tmp_path / "out" / "digits.h5")


@pytest.mark.needs("datasets")
def test_a_seed_decides_the_result(tmp_path: Path) -> None:
    runs = [demo(tmp_path / str(i), "--epochs", "1", "--seed", str(i // 2)) for i in range(3)]
    files = [(tmp_path / str(i) / "digits.h5").read_bytes() for i in range(3)]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert files[0] == files[1] != files[2]


@pytest.mark.needs("datasets")
def test_without_matplotlib_it_says_what_to_install(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked" / "matplotlib"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text(
        "raise ModuleNotFoundError('no matplotlib', name='matplotlib')"
    )
    run = demo(tmp_path / "out", "--epochs", "1", PYTHONPATH=str(blocked.parent))
    assert run.returncode == 0, run.stderr
    assert 'pip install "gradtape[plot]"' in run.stdout
    assert not (tmp_path / "out" / "training.png").exists()


@pytest.mark.needs("datasets")
def test_a_failed_verification_is_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from gradtape.cli import demo as module

    save = gt.saving.save

    def save_without_samples(model, path, **settings):
        save(model, path, golden=False)  # a file that proves nothing

    monkeypatch.setattr(module.saving, "save", save_without_samples)
    assert module.run(str(tmp_path), epochs=1) != 0
    assert "failed its verification" in capfd.readouterr().err
