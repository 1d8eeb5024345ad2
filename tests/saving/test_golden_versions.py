"""tests/saving/golden holds a dated file of each version of the format, and none was changed."""

from __future__ import annotations

import datetime
import hashlib
import re
from pathlib import Path

import h5py

from gradtape.saving.records import schema

GOLDEN = Path(__file__).parent / "golden"
ROW = re.compile(r"^\| (\d+\.\d+) \| ([\d-]+) \| (\S+) \| `(\w+)` \|$", re.MULTILINE)
ROWS = ROW.findall((GOLDEN / "README.md").read_text("utf-8"))


def test_each_version_of_the_page_has_a_file() -> None:
    page = (GOLDEN.parents[2] / "docs" / "format.md").read_text("utf-8")
    versions = re.findall(r"^\| (\d+\.\d+) \| gradtape", page, re.MULTILINE)
    assert list(dict.fromkeys(version for version, *_ in ROWS)) == versions
    assert versions[-1] == ".".join(map(str, schema.VERSION))


def test_each_file_is_listed_with_its_version_and_as_it_was_written() -> None:
    assert sorted(name for _, _, name, _ in ROWS) == sorted(x.name for x in GOLDEN.glob("*.h5"))
    dates = [datetime.date.fromisoformat(date) for _, date, _, _ in ROWS]
    assert dates == sorted(dates)
    for version, _, name, digest in ROWS:
        with h5py.File(GOLDEN / name) as file:
            told = file.attrs["format_version"]
        assert (told.decode() if isinstance(told, bytes) else told) == version
        found = hashlib.sha256((GOLDEN / name).read_bytes()).hexdigest()
        assert found == digest, f"{name} was written anew: is its version not released yet?"
