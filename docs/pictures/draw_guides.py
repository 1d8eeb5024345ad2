"""Draw the pictures that pages draw: ``python docs/pictures/draw_guides.py [NAME ...]``.

Each page whose code writes ``NAME.png`` or ``NAME.svg``, ``NAME`` being the page's, is run, and the
picture put beside this file. Needs Matplotlib.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

PICTURES = Path(__file__).resolve().parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def main(names: list[str]) -> None:
    """Run the pages of these names; all that draw, if there are none."""
    docs = PICTURES.parent
    for page in sorted([*docs.glob("*.md"), *(docs / "guides").glob("*.md")]):
        blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
        name = re.compile(rf'"({re.escape(page.stem)}\.(?:png|svg))"')
        drawn = [(i, found[1]) for i, code in enumerate(blocks) if (found := name.search(code))]
        if not drawn or (names and page.stem not in names):
            continue
        last, picture = drawn[-1]
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            scope = {"__name__": page.stem}
            for code in blocks[: last + 1]:
                exec(compile(code, str(page), "exec"), scope)
            shutil.copy(picture, PICTURES / picture)
            os.chdir(PICTURES)


if __name__ == "__main__":
    main(sys.argv[1:])
