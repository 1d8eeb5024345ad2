"""Write docs/numpy.md, where gradtape differs from NumPy on purpose, from the fuzzer's data.

python docs/make_numpy_page.py            # write the page
python docs/make_numpy_page.py --check    # exit with 1 if it is not up to date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import gradtape as gt
from gradtape.testing.fuzz.numpy_calls.differences import shown
from gradtape.testing.fuzz.numpy_calls.kept import DIFFERENCES
from gradtape.testing.fuzz.numpy_calls.table import NOT_CALLED

PAGE = Path(__file__).with_name("numpy.md")
HEAD = """# Where gradtape differs from NumPy

NumPy's functions find tensors (`np.sin(t)`, `np.linalg.solve(a, t)`), and values, dtypes, shapes
and exceptions are NumPy's. A fuzzer holds them to it, with random calls of every function that
has a NumPy namesake, right and wrong ones:

```console
$ python -m gradtape.testing.fuzz numpy --calls 200000 --seed 1
```

What differs, differs on purpose. First what concerns gradients and memory:

* A *list* of tensors says nothing to NumPy: `np.sqrt([t, t])` and `np.mean([t, t], axis=0)` read
  its values into an array, and the tape loses them (`tape.explain` says so). Join tensors first.
  Functions that take several arrays, such as `np.stack([t, t])` and `np.concatenate`, are fine,
  and so is `gt.constant([t, t])`.
* Python's floats are `float32` (`gt.set_default_dtype` says otherwise); the table is of
  `float64`.
* The array parameter of most functions is called `x`, and `keepdims` follows `axis`: give what
  comes after the axis by name. `gt.random` draws its own numbers, and takes the shape first.
* What is exported by DLPack is a copy, since a tensor never changes and its receiver may:
  `np.from_dlpack(t)`, `torch.from_dlpack(t)`. With `copy=False` the memory is shared, and marked
  as read-only; NumPy heeds the mark, PyTorch does not. `np.asarray(t)` shares memory, and is
  read-only.

```python
import numpy as np

import gradtape as gt

t = gt.constant([1.0, 4.0])
with gt.GradientTape() as tape:
    tape.watch(t)
    lost = gt.constant(np.sqrt([t, t]))
    kept = np.sqrt(np.stack([t, t]))
assert "list of tensors" in tape.explain(lost, t)
assert tape.gradient(kept, t) is not None
assert gt.linalg.eigvals(np.eye(2)).dtype == "complex128"
```

Then what the fuzzer knows. Each row has a call that shows it, of NumPy's arrays and of tensors
(`xp` is `np` or `gt`). This table is written by `python docs/make_numpy_page.py`; the suite
checks that it is up to date and that each difference is one.

| what | how it differs, and why | for instance | NumPy | gradtape |
| --- | --- | --- | --- | --- |
"""
TAIL = """
Not called by the fuzzer, of what has NumPy's name:

| function | reason |
| --- | --- |
"""
LONGEST = 90


def cell(text: str) -> str:
    """Return an answer as a cell: shortened, and without what tables are made of."""
    text = re.sub(r"\s+", " ", text).replace("|", "\\|")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def page() -> str:
    """Return the text of the page."""
    gt.set_default_dtype("float64")
    rows = []
    for kept in DIFFERENCES:
        theirs, ours = (f"`{cell(shown(kept.example, t).text())}`" for t in (False, True))
        answers = ("it varies", "") if kept.varies else (theirs, ours)
        cells = (kept.what, kept.reason, f"`{cell(kept.example)}`", *answers)
        rows.append(f"| {' | '.join(cells)} |\n")
    rest = [f"| `{name}` | {reason} |\n" for name, reason in NOT_CALLED.items()]
    return HEAD + "".join(rows) + TAIL + "".join(rest)


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
