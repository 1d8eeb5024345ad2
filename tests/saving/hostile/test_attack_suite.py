"""Hundreds of attacks on each kind of file: each is refused in words, quickly, in little memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attacks
import pytest
from attacks import Attack
from forge import behaviour
from fuzz.commands import Clock
from fuzz.files.judging import judged, without_a_new_interpreter
from rewriting import Draft

import gradtape as gt

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="files are read in forks")


@pytest.fixture(scope="module")
def plain(template: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / "plain.h5"
    path.write_bytes(template)
    return path


@pytest.fixture(scope="module")
def compressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compressed") / "compressed.h5"
    module = gt.Module("compressed")
    module.w = gt.Variable(gt.reshape(gt.arange(4000) % 7, (40, 100)))
    gt.save(module, path, compression="gzip")
    return path


def withstood(
    suite: list[tuple[str, Attack]], sound: Path, folder: Path, same: Callable[[Path], Any] | None
) -> int:
    """Read what each attack makes in forks, and return how many were accepted."""
    from fuzz.files.workers import Pool

    data = sound.read_bytes()
    expected = None if same is None else same(sound)

    def read(number: int) -> tuple[str, str | None]:
        path = folder / f"{os.getpid()}.h5"
        attacked = suite[number][1](data)
        if attacked == data:
            return "the same", None
        path.write_bytes(attacked)
        outcome, wrong = judged(str(path), None, verify=number % 40 == 0)
        if outcome == "accepted" and expected is not None and not wrong and same(path) != expected:
            wrong = "accepted with other values"
        return outcome, wrong

    with without_a_new_interpreter():
        results = list(Pool(read, 0, 2, Clock(None, len(suite))).results())
    assert [(suite[i][0], wrong) for i, _, wrong in results if wrong is not None] == []
    assert len(results) == len(suite)
    return sum(outcome == "accepted" for _, outcome, _ in results)


def values(path: Path) -> list[Any]:
    return [(v.name, v.numpy().tobytes()) for v in gt.load(path).variables]


def test_no_attack_on_headers_gets_through(plain: Path, tmp_path: Path) -> None:
    suite = list(attacks.header_attacks(plain.read_bytes()))[::3]
    assert len(suite) > 1000
    assert withstood(suite, plain, tmp_path, behaviour) < 40


def test_no_attack_on_headers_of_compressed_data_gets_through(
    compressed: Path, tmp_path: Path
) -> None:
    suite = list(attacks.header_attacks(compressed.read_bytes()))[::3]
    assert any("a compressed dataset" in name for name, _ in suite)
    assert withstood(suite, compressed, tmp_path, values) < 40


def test_no_attack_on_links_gets_through(plain: Path, tmp_path: Path) -> None:
    suite = list(attacks.link_attacks(plain.read_bytes()))
    assert len(suite) > 150
    assert withstood(suite, plain, tmp_path, behaviour) < 10


def test_no_attack_on_the_whole_file_gets_through(plain: Path, tmp_path: Path) -> None:
    suite = list(attacks.block_attacks(plain.read_bytes()))
    assert len(suite) > 100
    assert withstood(suite, plain, tmp_path, behaviour) < 40


def test_no_claim_gets_through(plain: Path, tmp_path: Path) -> None:
    suite = list(attacks.claim_attacks(Draft.of(plain)))
    assert withstood(suite, plain, tmp_path, behaviour) <= 3
