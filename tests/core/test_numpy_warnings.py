"""NumPy's warnings about numbers name the user's line, unless the user's filters say otherwise."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from gradtape.core.base.user_code import show_at_users_lines

SCRIPT = """
import numpy as np
{before}
import gradtape as gt

x = gt.constant(np.array([-2.0, 1.0]))


def f(x):
    y = np.log1p(x)  # line 10
    return gt.sum(np.where(x > 0, y, 0.0))


{run}
"""
RUNS = {
    "eager": ("f(x)", 10),
    "an operator": ("1.0 / gt.zeros(2)", 14),
    "backward": (
        "z = gt.constant(0.0)\nwith gt.GradientTape() as t:\n"
        "    t.watch(z)\n    y = gt.sqrt(z)\nt.gradient(y, z)",
        18,
    ),
    "compiled": ("g = gt.function(f)\nwith np.errstate(all='ignore'):\n    g(x)\ng(x)", 17),
}


def told(run: str, tmp_path: Path, *options: str, before: str = "") -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(run=run, before=before))
    # the folder of the script, which PYTHONSAFEPATH leaves out
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, *options, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
    return done.stderr


@pytest.mark.parametrize("name", RUNS)
def test_the_users_line_is_named_once(name: str, tmp_path: Path) -> None:
    run, line = RUNS[name]
    text = told(run, tmp_path)
    assert text.count("RuntimeWarning") == 1, text
    assert f"script.py:{line}: RuntimeWarning: " in text


def test_a_line_that_runs_again_warns_once(tmp_path: Path) -> None:
    text = told("f(x)\nf(x)\ngt.grad(f)(x)", tmp_path)
    assert text.count("RuntimeWarning: invalid value encountered in log1p") == 1


def test_filters_of_the_user_come_first(tmp_path: Path) -> None:
    ignore = "import warnings\nwarnings.simplefilter('ignore')"
    assert told("f(x)", tmp_path, before=ignore) == ""
    assert told("f(x)", tmp_path, "-W", "ignore::RuntimeWarning") == ""
    text = told("f(x)", tmp_path, "-W", "error::RuntimeWarning")
    assert "RuntimeWarning: invalid value encountered in log1p" in text
    assert "Traceback" in text
    text = told("f(x)\nf(x)", tmp_path, "-W", "always::RuntimeWarning")
    assert text.count("RuntimeWarning") == 2


def test_warnings_of_the_users_own_numpy_are_left_alone(tmp_path: Path) -> None:
    text = told("np.log(np.zeros(2))", tmp_path)
    assert "script.py:14: RuntimeWarning: divide by zero encountered in log" in text
    assert text.count("RuntimeWarning") == 1


LIBRARY = """
def helper():
    warnings.warn({text!r}, {category}, stacklevel=2)
"""


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("a problem encountered in a library", "UserWarning"),
        ("a problem encountered in a library", "RuntimeWarning"),
        ("overflow encountered in a library's own loop", "RuntimeWarning"),
    ],
)
def test_warnings_of_other_libraries_are_left_alone(
    text: str, category: str, tmp_path: Path
) -> None:
    library = "import warnings\n" + LIBRARY.format(text=text, category=category)
    (tmp_path / "library.py").write_text(library)
    found = told("import library\nlibrary.helper()", tmp_path)
    assert f"script.py:15: {category}: {text}" in found
    assert found.count("Warning: ") == 1, found


def test_a_copy_of_the_filters_fits_nothing() -> None:
    show_at_users_lines()  # pytest restores the filters after each test
    ours = [x for x in warnings.filters if type(x[3]).__module__.startswith("gradtape")]
    assert len(ours) == 1
    for action, text, category, module, line in (
        *pickle.loads(pickle.dumps(ours)),
        *copy.deepcopy(ours),
    ):
        assert (action, category, line) == ("ignore", RuntimeWarning, 0)
        assert text.match("overflow encountered in exp") is None
        assert module.match("gradtape.core") is None


def test_the_filters_can_be_copied_by_their_patterns(tmp_path: Path) -> None:
    run = """\
import sys, warnings
gt.log(gt.ones(1))
filters = list(warnings.filters)
with warnings.catch_warnings():
    warnings.resetwarnings()
    for action, text, category, module, line in filters:  # as scikit-learn does
        texts = ["" if x is None else getattr(x, "pattern", x) for x in (text, module)]
        warnings.filterwarnings(action, texts[0], category, texts[1], line, append=True)
    f(x)
sys.exit(f"copied {len(filters)}")
"""
    text = told(run, tmp_path)
    assert "copied" in text
    assert "RuntimeWarning: invalid value encountered in log1p" in text


def test_scikit_learn_runs_jobs_where_gradtape_is_used(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    run = """\
import sys
from sklearn.model_selection import cross_val_score
gt.log(gt.ones(1))
values = np.linspace(-1.0, 1.0, 20)[:, None]
net = gt.sklearn.Classifier(units=(), epochs=1, random_state=0)
scores = cross_val_score(net, values, values[:, 0] > 0, cv=2, error_score="raise")
sys.exit(f"scores {len(scores)}")
"""
    assert "scores 2" in told(run, tmp_path)


def test_a_compiled_function_that_warned_ends(tmp_path: Path) -> None:
    run = """\
import gc, types
gt.function(lambda x: gt.log(x) + np.ones(3))(gt.constant(np.zeros(3)))
gc.collect()
plans = [x for x in gc.get_objects() if type(x) is types.FunctionType and x.__name__ == "run"]
assert not [x for x in plans if x.__code__.co_filename.startswith("<plan")]
"""
    text = told(run, tmp_path)
    assert "divide by zero" in text
    assert "Error" not in text


def test_other_warnings_appear_once(tmp_path: Path) -> None:
    run = (
        "class Net(gt.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.d = gt.layers.Dense(1)\n\n    def __call__(self, x):\n"
        "        return self.d(x) * float(gt.sum(x))\n\n\n"
        "data = np.ones((64, 2), 'float32'), np.ones((64, 1), 'float32')\n"
        "gt.training.fit(Net(), data, loss='mse', batch_size=1, verbose=0)"
    )
    text = told(run, tmp_path)
    assert text.count("the training step cannot be compiled") == 1, text
    assert "RuntimeWarning" not in text
