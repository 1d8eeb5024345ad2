"""Write docs/numpy.md, where gradtape differs from NumPy on purpose, from the fuzzer's data.

python docs/make_numpy_page.py            # write the page
python docs/make_numpy_page.py --check    # exit with 1 if it is not up to date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import gradtape as gt

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from fuzz.numpy_calls.differences import shown
from fuzz.numpy_calls.kept import DIFFERENCES
from fuzz.numpy_calls.table import NOT_CALLED
from generated_pages import write_or_check

PAGE = Path(__file__).with_name("numpy.md")
HEAD = """# Where gradtape differs from NumPy

NumPy's functions accept tensors (`np.sin(t)`, `np.linalg.solve(a, t)`). Values, dtypes, shapes
and exceptions are NumPy's. A [fuzzer](fuzzing.md) compares random calls, valid and invalid, of
every function that has a NumPy namesake. gradtape is also a namespace of [the array API
standard](array-api.md).

The remaining differences are intended. [From a NumPy script](guides/numpy-script.md) shows how to
change a program.

## Gradients and memory

* **A tensor never changes.** `t[k] = 0.0` and `t += u` do not change a tensor: the first is an
  error, the second makes a new tensor. `gt.writable(x)` is an array with NumPy's assignments,
  in-place operators and views, through which gradients pass.
* **Writing into a NumPy array.** `array[k] = t`, `array += t`, `np.add.at(array, i, t)` and
  `out=array` store numbers, and a gradient would be lost. Inside a tape, a trace or a batch they
  are errors, which say what to write instead. Outside, they do what NumPy does. An assignment
  `array[k] = t` to an array that is only a log is [no
  error](guides/recording.md#values-that-leave-and-come-back) on a tape.
* **Lists of tensors.** NumPy does not recognise a *list* of tensors: `np.sqrt([t, t])`,
  `np.mean([t, t], axis=0)` and `np.array([t, t])` read the values into an array, and no tape
  follows the array (`tape.explain` says so). Join the tensors first: `np.stack([t, t])`,
  `np.concatenate`, `gt.array([t, t])` and `gt.constant([t, t])` have gradients.
* **Results are tensors.** NumPy's functions return tensors, inside a tape and outside, even if
  they only rearrange (`np.squeeze(t)`). A program therefore behaves the same with and without a
  tape. A few functions run NumPy's own code on the values, and return arrays: functions that
  gradtape lacks (`np.histogram2d`), and functions that mix numbers with text or objects. Inside a
  tape, a trace or a batch, such a call is an error.
* **Other libraries.** Ufuncs of other libraries run what a plugin has for them: [SciPy's special
  functions](special.md) keep gradients. SciPy's Python functions read values. Inside a tape they
  warn, and say what to use instead. If nothing follows a tensor, NumPy's functions return arrays
  to SciPy's own code, because [its optimizers and solvers](guides/scipy.md) expect arrays.
* **Exact types.** Some of NumPy's compiled code tests whether an argument is exactly a NumPy
  array. `np.random.choice(n, p=p)` tolerates the rounding of a `float32` array `p`, but not the
  rounding of a `float32` tensor or of another library's array. Write `p.numpy()`, or use
  `gt.random.choice(n, p=p)`: the sum of its `p` need not be 1, and it runs in traces and batches.
* **Memory.** A DLPack export (`np.from_dlpack(t)`, `torch.from_dlpack(t)`) is a copy, because a
  tensor never changes and the receiver may write to the memory. With `copy=False` the memory is
  shared and marked read-only. NumPy respects the mark; PyTorch does not. `np.asarray(t)` shares
  the memory, and the array is read-only.

## Precision and parameters

* Python floats become `float32`, and `gt.zeros`, `gt.ones` and `gt.eye` make `float32`, unless
  you call `gt.set_default_dtype("float64")`. The table below uses `float64`.
  `x.at[i].set(values)` warns if it rounds `float64` to the dtype of `x`.
* Sums, products and softmaxes of `float16` are computed in `float32` and rounded once. NumPy sums
  mostly in `float16`, which cannot count beyond 2048: see [mixed precision](mixed_precision.md).
* The array parameter of most functions is called `x`, and `keepdims` follows `axis`: pass the
  parameters after `axis` by keyword. `gt.random` has its own generator, and takes the shape
  first.

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

counts = np.zeros(3)
np.add.at(counts, [0, 0, 2], gt.ones(3))  # no tape is active
assert counts.tolist() == [2.0, 0.0, 1.0]
p = gt.nn.softmax(gt.constant([[0.1, 0.2, 0.3]]))
assert isinstance(np.squeeze(p), gt.Tensor)
assert np.random.choice(3, p=np.squeeze(p.numpy())) in (0, 1, 2)
assert gt.random.choice(3, p=np.squeeze(p)).item() in (0, 1, 2)
```

## Differences of single calls

Each row shows a call with NumPy's arrays and with tensors (`xp` is `np` or `gt`). `python
docs/make_numpy_page.py` writes the table from the calls in which the fuzzer finds a difference.
The test suite checks that the table is up to date, and that each row still is a difference. To
run the fuzzer yourself:

```console
$ python tests/fuzz numpy --calls 200000 --seed 1
```

| what | how it differs, and why | for instance | NumPy | gradtape |
| --- | --- | --- | --- | --- |
"""
TAIL = """
The fuzzer does not call these functions with a NumPy namesake:

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


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page()}, sys.argv[1:]))
