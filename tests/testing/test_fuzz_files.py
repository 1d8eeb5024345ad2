"""The fuzzer of files: a short run, and that it notices what it looks for."""

from __future__ import annotations

import os
import random
import resource
import time
from pathlib import Path
from typing import Any

import pytest
from fuzz.commands import Clock, main
from fuzz.files import command, documents, headers
from fuzz.files.judging import Limits, judged
from fuzz.files.subjects import subjects

import gradtape as gt

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="files are read in forks")


def test_a_short_run_finds_nothing(capsys: Any) -> None:
    arguments = ["--kind", "metadata", "--kind", "json", "--kind", "raw", "--keep-going"]
    code = main(["files", "--seed", "4", "--files", "150", *arguments])
    assert code == 0, capsys.readouterr().out
    assert "unexplained: 0" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_files() -> None:
    for number in range(20):
        assert command.case(3, number, ["metadata", "json", "raw"]) == command.case(
            3, number, ["metadata", "json", "raw"]
        )


def test_headers_in_parts_are_written_as_they_were() -> None:
    for subject in subjects():
        assert headers.Headers(subject.data).encoded() == subject.data


def test_what_is_changed_gets_past_the_digests(tmp_path: Path) -> None:
    """Else the reader would refuse everything at its door, and nothing behind it would be tried."""
    traced = next(subject for subject in subjects() if subject.name == "traced")
    said = set()
    for seed in range(60):
        data = documents.changed(traced.parts, random.Random(seed)).encoded()
        (tmp_path / "a.h5").write_bytes(data)
        try:
            gt.load(tmp_path / "a.h5")
        except gt.saving.LoadError as error:
            said.add(str(error))
    assert len(said) > 20
    assert not any("digest" in text or "checksum" in text for text in said)


def test_other_values_are_noticed(tmp_path: Path) -> None:
    one, other = subjects()[:2]
    path = tmp_path / "a.h5"
    path.write_bytes(one.data)
    assert judged(str(path), one.behaviour, verify=True) == ("accepted", None)
    assert judged(str(path), other.behaviour, verify=False)[1] == "accepted with other values"


def _fails() -> None:
    raise ZeroDivisionError("foreign")


def _given_back() -> int:
    # Where a peak cannot be reset, as much memory as a process had before does not show.
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(0, 1024 * peak - pages * resource.getpagesize())


# Linux counts a process's memory to within some megabytes for each processor.
# Only what hangs is given a second: a busy machine may take longer than that for memory.
@pytest.mark.parametrize(
    ("action", "said", "hang"),
    [
        (os.abort, "crash (SIGABRT)", 60.0),
        (lambda: all(iter(int, 1)) or [None for _ in iter(int, 1)], "hang", 1.0),
        (lambda: b"x" * (256 * 2**20 + _given_back()), "it took", 60.0),
        (_fails, "crash (exit code 1)", 60.0),
    ],
)
def test_a_process_that_fails_is_noticed_and_replaced(
    action: Any, said: str, hang: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuzz.files.workers import Pool

    monkeypatch.setattr(Limits, "memory", 64 * 2**20)

    def read(number: int) -> tuple[str, str | None]:
        if number == 3:
            action()
        return "fine", None

    found = sorted(Pool(read, 0, 2, Clock(None, 8), hang=hang).results())
    assert [number for number, _, _ in found] == list(range(8))
    assert [number for number, _, wrong in found if wrong] == [3]
    assert said in str(found[3][2])


def test_memory_that_was_had_before_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from fuzz.files.workers import Pool

    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        pytest.skip(f"peaks of memory cannot be reset here: {error}")
    monkeypatch.setattr(Limits, "memory", 64 * 2**20)
    taken = [256, 384, 256, 256]

    def read(number: int) -> tuple[str, str | None]:
        return str(len(b"x" * (taken[number] * 2**20))), None

    found = list(Pool(read, 0, 1, Clock(None, 4), hang=60.0).results())
    assert [number for number, _, wrong in found if wrong] == [1, 2, 3]


def test_slow_reading_and_foreign_errors_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(subjects()[0].data)
    readers = "fuzz.files.judging.READERS"

    def slow(path: str) -> None:
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass

    monkeypatch.setattr(Limits, "seconds", 0.1)
    monkeypatch.setattr(readers, {"load": slow})
    assert "load: slow" in str(judged(str(path), None, verify=False)[1])
    monkeypatch.setattr(readers, {"load": lambda path: _fails()})
    assert "ZeroDivisionError: foreign" in str(judged(str(path), None, verify=False)[1])
