"""Files that were changed after they were saved, with every digest and checksum made right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz.files.subjects import Parts

from gradtape.saving.container.hdf5.write import write


class Draft(Parts):
    """What a file holds, to be changed."""

    def json(self, path: str = "/manifest") -> Any:
        """Return what a text says."""
        return json.loads(self.texts[path])

    def put(self, record: Any, path: str = "/manifest") -> None:
        """Replace a text."""
        self.texts[path] = record if isinstance(record, str) else json.dumps(record)

    def write(self, path: Path) -> Path:
        """Write a file that is right but for what was changed."""
        write(path, self.attributes, self.texts, self.arrays)
        return path


def rewritten(path: Path, change: Callable[[Draft], Any], to: Path | None = None) -> Path:
    """Change a file; the digests are those of what is in it then."""
    draft = Draft.of(path)
    change(draft)
    return draft.write(to or path)
