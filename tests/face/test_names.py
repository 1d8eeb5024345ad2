"""The public names: what ``dir`` shows, what is loaded when, and what a mistyped name is told."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import gradtape.plugins.ops
from gradtape import hints
from gradtape.core.extend import Op
from gradtape.public import HOMES

MODULES = {name: getattr(gt, name) for name, home in HOMES.items() if home == "."}
SPACES = {name: module for name, module in MODULES.items() if hasattr(module, "__all__")}


def printed(code: str) -> str:
    """Return what a program prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# -- what there is ---------------------------------------------------------------------------------


def test_dir_shows_public_names_only() -> None:
    assert dir(gt) == sorted([*HOMES, "__version__"])
    assert not {"Any", "import_module", "publish", "core"} & set(dir(gt))


@pytest.mark.parametrize("name", SPACES)
def test_dir_of_a_module_shows_its_public_names_only(name: str) -> None:
    found = [x for x in dir(SPACES[name]) if name != "ops" or x not in dir(gt.ops)]
    assert found == sorted(SPACES[name].__all__)


@pytest.mark.parametrize("name", HOMES)
def test_every_name_is_there(name: str) -> None:
    value = getattr(gt, name)
    assert isinstance(value, ModuleType) == (HOMES[name] == ".")
    assert getattr(gt, name) is value


@pytest.mark.parametrize("name", SPACES)
def test_every_name_of_a_module_is_there_once(name: str) -> None:
    names = SPACES[name].__all__
    assert len(names) == len(set(names))
    assert all(hasattr(SPACES[name], part) for part in names)


def test_no_op_of_a_family_is_forgotten() -> None:
    public = {id(getattr(gt, name)) for name in HOMES}
    public |= {id(getattr(space, name)) for space in SPACES.values() for name in space.__all__}
    internal = {"flatten_last"}
    forgotten = set()
    for found in pkgutil.walk_packages(gradtape.plugins.ops.__path__, "gradtape.plugins.ops."):
        for name, value in vars(importlib.import_module(found.name)).items():
            # a function that users call has an example
            ours = isinstance(value, (type, FunctionType)) and value.__module__ == found.name
            shown = ours and ">>>" in str(value.__doc__)
            if (isinstance(value, Op) or shown) and name[0] != "_" and id(value) not in public:
                forgotten.add(name)
    assert forgotten == internal


def test_a_star_import_gives_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from gradtape import *", names)
    assert {name for name in names if name != "__builtins__"} == set(HOMES)


# -- when it is loaded -----------------------------------------------------------------------------


def test_ops_and_files_are_loaded_when_they_are_used() -> None:
    code = (
        "import sys, gradtape\n"
        "hasattr(gradtape, 'no_such_name')\n"
        "print(sorted(name for name in sys.modules if name.startswith('gradtape')))\n"
        "print([name in sys.modules for name in ('numpy', 'h5py')])"
    )
    alone = ["gradtape", "gradtape.core", "gradtape.core.errors", "gradtape.public"]
    assert printed(code).splitlines() == [str(alone), "[False, False]"]


def test_each_name_can_be_what_a_program_asks_for_first() -> None:
    first = {home: name for name, home in reversed(HOMES.items()) if home != "."}
    names = [*first.values(), *MODULES]
    code = (
        "import importlib, sys\n"
        f"for name in {names}:\n"
        "    for known in [m for m in sys.modules if m.partition('.')[0] == 'gradtape']:\n"
        "        del sys.modules[known]\n"
        "    getattr(importlib.import_module('gradtape'), name)\n"
        "    print(name)"
    )
    assert printed(code).split() == names


@pytest.mark.parametrize("option", ["-O", "-OO"])
def test_the_package_works_without_asserts_and_docstrings(option: str) -> None:
    code = (
        "import gradtape as gt, gradtape.compat.tensorflow as tf\n"
        "for name in gt.__all__: getattr(gt, name).__doc__\n"
        "layer = tf.keras.layers.Dense(2)\n"
        "print(layer(tf.ones((1, 3))).shape, gt.nn.relu.__doc__ is None)"
    )
    done = subprocess.run(
        [sys.executable, option, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout == "(1, 2) False\n", done.stderr


def test_threads_may_ask_for_their_first_names_at_once() -> None:
    code = (
        "import threading, gradtape as gt\n"
        "failed = []\n"
        "def ask(name):\n"
        "    start.wait()\n"
        "    try:\n"
        "        float(gt.constant(1.0) + 1.0) if name == 'constant' else getattr(gt, name)\n"
        "    except BaseException as error:\n"
        "        failed.append((name, error))\n"
        "names = 'interp vecmat argmin where ravel layers nn constant'.split()\n"
        "start = threading.Barrier(len(names))\n"
        "threads = [threading.Thread(target=ask, args=(name,)) for name in names]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(failed)"
    )
    assert {printed(code) for _ in range(5)} == {"[]"}


def test_imports_of_modules_and_of_names_agree() -> None:
    code = (
        "import gradtape as gt, gradtape.fft, gradtape.nn as nn, gradtape.random\n"
        "from gradtape.linalg import solve\n"
        "print(nn is gt.nn, gradtape.fft is gt.fft, gradtape.random is gt.random)\n"
        "print(solve is gt.linalg.solve)"
    )
    assert printed(code).split() == ["True"] * 4


def test_nothing_hides_the_standard_librarys_random() -> None:
    root = str(Path(__file__).parents[2])  # where Python may well be started
    code = f"import sys; sys.path.insert(0, {root!r}); import random; print(random.Random)"
    assert printed(code) == "<class 'random.Random'>"


# -- what is not there -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("softmx", "gt.nn.softmax"),
        ("softmax", "gt.nn.softmax"),
        ("zeross", "gt.zeros"),
        ("reduce_sum", "gt.sum"),
        ("is_nan", "gt.isnan"),
        ("dense", "gt.layers.Dense"),
        ("Adam", "gt.training.Adam"),
        ("gradient_tape", "gt.GradientTape"),
        ("nn.softmaxx", "gt.nn.softmax"),
        ("nn.solve", "gt.linalg.solve"),
        ("linalg.sovle", "gt.linalg.solve"),
        ("fft.fft3", "gt.fft.fft"),
        ("random.rand_int", "gt.random.randint"),
        ("layers.BatchNorn", "gt.layers.BatchNorm"),
        ("training.metrics.acuracy", "gt.training.accuracy"),
        ("errors.LoadError", "gt.saving.LoadError"),
    ],
)
def test_a_mistyped_name_gets_a_hint(path: str, meant: str) -> None:
    module, _, name = f"gt.{path}".rpartition(".")
    known = module.replace("gt", "gradtape", 1)
    with pytest.raises(AttributeError) as caught:
        eval(f"gt.{path}")
    said = f"module {known!r} has no attribute {name!r}; did you mean {meant}?"
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("ndarray", "gt.Tensor"),
        ("vectorize", "gt.vmap"),
        ("put", r"x.ravel().at[indices].set(values): a tensor never changes"),
        ("r_", "gt.concatenate"),
        ("float128", "gt.float64, the widest float dtype"),
        ("random.randn", "gt.random.normal(shape)"),
        ("random.default_rng", "gt.random.Generator(seed)"),
    ],
)
def test_a_name_of_numpys_that_is_not_there_says_what_to_use(path: str, instead: str) -> None:
    with pytest.raises(AttributeError) as caught:
        eval(f"gt.{path}")
    assert str(caught.value).endswith(f"; use {instead}")


#: Of PyTorch, Keras and JAX, in the package itself; in other places all are, but for ``random``.
OF_OTHERS = (
    "applications autograd backward bmm callbacks cat checkpoint clamp compile config "
    "cross_entropy cuda "
    "custom_jvp custom_vjp default_matmul_precision device device_put enable_grad FloatTensor "
    "from_numpy Functional get_default_dtype "
    "inference_mode initializers inverse is_tensor jit keras key lax load_model LongTensor "
    "manual_seed mm models no_grad no_gradient numel numpy optim Parameter permute pmap PRNGKey "
    "preprocessing randperm requires_grad rsqrt save_model seed set_float32_matmul_precision "
    "set_grad_enabled set_random_seed split tensor topk train unsqueeze utils view"
).split()


def object_named(place: str) -> Any:
    """Return the module or class at a place of the package."""
    return eval(f"gt.{place}" if place else "gt")


#: What the names in hints stand for.
STAND_INS: dict[str, Callable[[], Any]] = {
    "x": lambda: gt.ones((2, 2)),
    "v": lambda: gt.Variable(1.0),
    "tape": gt.GradientTape,
    "model": lambda: gt.layers.Sequential([gt.layers.Dense(1)]),
    "layer": lambda: gt.layers.Dense(1),
    "optimizer": gt.training.Adam,
    "dataset": lambda: gt.data.Dataset.from_tensor_slices([1.0]),
}


@pytest.mark.parametrize("place", hints.INSTEAD)
def test_what_stands_in_for_a_name_is_there_and_the_name_is_not(place: str) -> None:
    lacks = object_named(place)
    for name, instead in hints.INSTEAD[place].items():
        assert not hasattr(lacks, name)
        assert not re.search(r"\b_(?!_)", instead), "a private name"
        for path in re.findall(r"\b(?:gt|np)(?:\.\w+)+", instead):
            eval(path)
        for who, member in re.findall(r"\b(\w+)\.([a-zA-Z]\w*)", instead):
            if who in STAND_INS:
                made = STAND_INS[who]()
                if who == "layer":
                    made(gt.ones((1, 1)))
                assert hasattr(made, member), instead


@pytest.mark.parametrize("place", ["", "random"])
def test_a_hint_in_the_package_itself_is_for_a_name_of_numpys_or_of_a_listed_library(
    place: str,
) -> None:
    of_numpy = vars(np.random if place else np)
    for name in hints.INSTEAD[place]:
        # row_stack is gone since NumPy 2.5
        known = name in of_numpy or name in ("float", "int", "row_stack", *OF_OTHERS)
        assert known or hasattr(np, name), name


NUMPYS_OWN = (
    "array2string array_repr array_str asarray_chkfinite ascontiguousarray asfortranarray "
    "base_repr binary_repr broadcast busday_count busday_offset busdaycalendar common_type "
    "datetime_as_string datetime_data flatiter format_float_positional format_float_scientific "
    "frombuffer fromfile fromfunction fromiter fromregex fromstring genfromtxt get_include "
    "get_printoptions getbufsize geterr geterrcall info is_busday isfortran isnat iterable "
    "loadtxt may_share_memory memmap min_scalar_type mintypecode nested_iters packbits "
    "printoptions rec recarray record require savez_compressed set_printoptions setbufsize seterr "
    "seterrcall shares_memory show_config show_runtime test typename ufunc unpackbits"
).split()


def test_every_function_of_numpys_is_there_or_says_what_to_use_or_is_numpys_own_affair() -> None:
    """Text, files, memory, dates and settings are NumPy's own: it does them on values."""
    missing = {name for name in np.__all__ if callable(getattr(np, name)) and not hasattr(gt, name)}
    missing -= {name for name in missing if isinstance(getattr(np, name), type)}  # dtypes
    missing -= {*hints.INSTEAD[""], *NUMPYS_OWN}
    assert {name for name in missing if "did you mean" not in message_for(name)} == set()


def message_for(name: str) -> str:
    with pytest.raises(AttributeError) as caught:
        getattr(gt, name)
    return str(caught.value)


@pytest.mark.parametrize("name", ["qqqqq", "_private", "__dunder__"])
def test_what_is_like_nothing_gets_no_hint(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(gt, name)
    assert str(caught.value) == f"module 'gradtape' has no attribute {name!r}"


def test_a_traceback_shows_one_hint_and_the_builtins_name() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import gradtape as gt; gt.zeross"], capture_output=True, text=True
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        "AttributeError: module 'gradtape' has no attribute 'zeross'; did you mean gt.zeros?"
    )


def test_looking_for_a_name_reads_no_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def hint(*arguments: str) -> str:
        raise AssertionError("somebody reads the message")

    monkeypatch.setattr("gradtape.public._hint", hint)
    assert not hasattr(gt, "zeross")
    assert getattr(gt.nn, "softmaxx", 7) == 7
    with pytest.raises(ImportError):
        exec("from gradtape import no_such_name")


def test_modules_that_are_not_public_names_are_found_as_ever() -> None:
    from gradtape import cli
    from gradtape.saving.proofs import golden

    assert cli.__name__ == "gradtape.cli"
    assert golden.__name__ == "gradtape.saving.proofs.golden"
    assert printed("import gradtape as gt; print(gt.core.__name__)") == "gradtape.core"


def test_a_module_that_cannot_be_imported_does_not_hide_the_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "gradtape.training", None)
    with pytest.raises(AttributeError) as caught:
        _ = gt.zeross
    told = "module 'gradtape' has no attribute 'zeross'"  # the other modules have a near name
    assert str(caught.value) == f"{told}; did you mean gt.zeros?"


@pytest.mark.parametrize("name", ["layers", "training", "saving", "nn", "random", "linalg"])
def test_a_module_of_the_package_imports_what_it_needs_by_its_place(name: str) -> None:
    # a name of the package is imported under a lock, for which a thread that is half way through an
    # import must not wait: the holder may wait for that import
    code = (
        "import sys, gradtape; asked = []; names = vars(gradtape)['__getattr__']\n"
        "def spy(name):\n"
        "    asked.append(name)\n"
        "    return names(name)\n"
        "vars(gradtape)['__getattr__'] = spy\n"
        f"import gradtape.{name}\n"
        "print([name for name in asked if name[:2] != '__'])"
    )
    assert printed(code) == "[]"


@pytest.mark.parametrize(
    "name",
    ["compat.tensorflow", "datasets", "debug", "layers", "nn", "saving", "testing", "training"],
)
def test_a_module_is_imported_while_another_thread_imports_names(name: str) -> None:
    # who holds the lock may wait for this very module: a plugin that is being discovered imports it
    code = (
        "import threading, importlib\n"
        "from gradtape.public import IMPORTING\n"
        f"load = lambda: importlib.import_module('gradtape.{name}')\n"
        "thread = threading.Thread(target=load, daemon=True)\n"
        "with IMPORTING:\n"
        "    thread.start()\n"
        "    thread.join(60)\n"
        "    print(thread.is_alive())"
    )
    assert printed(code) == "False"


def test_the_error_reaches_another_process_and_is_shown_as_what_it_is() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = gt.nn.sofmax
    said = "module 'gradtape.nn' has no attribute 'sofmax'; did you mean gt.nn.softmax?"
    sent = pickle.loads(pickle.dumps(caught.value))
    assert (type(sent), str(sent)) == (AttributeError, said)
    assert repr(caught.value) == repr(sent)
    assert type(caught.value).__name__ == "AttributeError"


def test_threads_may_import_different_modules_at_once() -> None:
    code = (
        "import importlib, threading, gradtape as gt\n"
        "names = 'nn linalg fft random layers training saving debug'.split()\n"
        "start, failed = threading.Barrier(len(names) + 2), []\n"
        "def run(work):\n"
        "    start.wait()\n"
        "    try:\n"
        "        work()\n"
        "    except BaseException as error:\n"
        "        failed.append(repr(error))\n"
        "load = importlib.import_module\n"
        "works = [lambda name=name: load(f'gradtape.{name}') for name in names]\n"
        "works += [lambda: gt.layers, lambda: gt.constant(1.0) + 1.0]\n"
        "threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join(60) for thread in threads]\n"
        "print(failed, any(thread.is_alive() for thread in threads))"
    )
    assert printed(code) == "[] False"
