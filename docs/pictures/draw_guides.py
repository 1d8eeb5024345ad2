"""Draw the pictures that guides draw: ``python docs/pictures/draw_guides.py [NAME ...]``.

Each page whose code writes ``NAME.png``, ``NAME`` being the page's, is run, and the picture put
beside this file. Needs Matplotlib.
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
    for page in sorted((PICTURES.parent / "guides").glob("*.md")):
        picture, text = f"{page.stem}.png", page.read_text(encoding="utf-8")
        blocks = BLOCK.findall(text)
        last = max((i for i, code in enumerate(blocks) if picture in code), default=None)
        if last is None or (names and page.stem not in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            scope = {"__name__": page.stem}
            for code in blocks[: last + 1]:
                exec(compile(code, str(page), "exec"), scope)
            shutil.copy(picture, PICTURES / picture)
            os.chdir(PICTURES)


if __name__ == "__main__":
    main(sys.argv[1:])
