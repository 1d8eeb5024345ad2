"""What cannot be saved says why, and a save that fails leaves the disk as it was."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

import gradtape as gt
from gradtape.saving import SaveError, UntraceableGradient


def simple() -> gt.Module:
    module = gt.Module(name="m")
    module.w = gt.Variable([1.0, 2.0])
    return module


class Stubborn(gt.Module):
    """Its gradient calls NumPy on a value."""

    @gt.function(input_signature=[gt.TensorSpec([None])])
    def f(self, x: Any) -> Any:
        @gt.custom_gradient
        def stubborn(x: Any) -> Any:
            return x * 2.0, lambda g: gt.constant(np.asarray(g.numpy()) * 3.0)

        return stubborn(x)


def failing_saves(tmp_path: Path) -> list[tuple[str, Any, Any]]:
    def method(body: Any, *specs: gt.TensorSpec) -> gt.Module:
        class M(gt.Module):
            f = gt.function(input_signature=list(specs) or [gt.TensorSpec([])])(body)

        return M()

    class Shadow(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([])])
        def summary(self, x: Any) -> Any:
            return x

    class Static(gt.Module):
        @gt.function
        def f(self, x: Any, what: Any) -> Any:
            return x * 1.0

    class Branch(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.times = 0

        def __call__(self, x: Any) -> Any:
            self.times += 1
            return x * float(self.times)

    static, branch, deep = Static(), Branch(), simple()
    static.f(1.0, frozenset({1}))
    branch(np.ones(2, "float32"))
    nested: list[Any] = [gt.Variable(1.0)]
    for _ in range(100):
        nested = [nested]
    deep.nested = nested
    cyclic, key, odd, greek, name = (simple() for _ in range(5))
    cyclic.loop = [1]
    cyclic.loop.append(cyclic.loop)
    key.by = {object(): gt.Variable(1.0)}
    vars(odd)["to"] = gt.Variable(1.0)
    vars(greek)["β"] = gt.Variable(1.0)
    name._name = "β"
    taken = simple()
    taken.signatures = [gt.Variable(1.0)]
    untraced = gt.function(lambda x: x)
    serve = gt.function(lambda x: x, input_signature=[gt.TensorSpec([])])
    return [
        ("expected a gradtape.Module, got list", [simple()], {}),
        ("the gradient of .*stubborn.* cannot be traced", Stubborn(), {}),
        ("f cannot be traced: .*is not known while", method(lambda self, x: x if x else -x), {}),
        ("cannot be called 'summary'", Shadow(), {}),
        ("of type frozenset cannot be saved", static, {}),
        ("the trace does not give the output 0", branch, {}),
        ("nested too deeply", deep, {}),
        ("a container that holds itself", cyclic, {}),
        ("a key of type object cannot be saved", key, {}),
        ("'to' cannot be the name of an attribute", odd, {}),
        ("'β' cannot be the name of an attribute", greek, {}),
        ("ASCII letters", name, {}),
        ("has an attribute 'signatures'", taken, {"serve": serve}),
        ("'two words' is not an identifier", simple(), {"two words": serve}),
        ("'f' must be a gradtape.function", simple(), {"f": untraced}),
        ("'f' must be a gradtape.function", simple(), {"f": lambda x: x}),
    ]


def test_each_refusal_says_why_and_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    gt.save(simple(), path)
    before = path.read_bytes()
    for message, module, signatures in failing_saves(tmp_path):
        with pytest.raises(SaveError, match=message):
            gt.save(module, path, signatures=signatures)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["model.h5"]


def test_an_untraceable_gradient_names_its_function_and_line(tmp_path: Path) -> None:
    with pytest.raises(UntraceableGradient) as caught:
        gt.save(Stubborn(), tmp_path / "a.h5")
    message = str(caught.value)
    assert "stubborn" in message
    lines = Path(__file__).read_text().splitlines()
    place = next(part for part in message.split() if "test_save_errors.py:" in part)
    number = int(place.strip("():,").rpartition(":")[2])
    assert "lambda g" in lines[number - 1]
    x = gt.constant([1.0])
    with gt.GradientTape() as tape:  # eager use still works
        tape.watch(x)
        y = Stubborn.f.python_function(None, x)
    assert tape.gradient(y, x).numpy().tolist() == [3.0]


def test_a_trace_that_differs_may_be_saved_on_request(tmp_path: Path) -> None:
    class Branch(gt.Module):
        times = 0

        def __call__(self, x: Any) -> Any:
            type(self).times += 1
            return x * float(self.times)

    module = Branch()
    module(np.ones(2, "float32"))
    gt.save(module, tmp_path / "a.h5", golden=False)
    report = gt.saving.verify(tmp_path / "a.h5")
    assert not report.ok
    assert "not checked (saved without golden vectors)" in report.table()
    assert "proves nothing" in report.table()


# -- the disk --------------------------------------------------------------------------------------


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match=r"the folder .*nowhere does not exist"):
        gt.save(simple(), tmp_path / "nowhere" / "a.h5")
    assert not list(tmp_path.iterdir())


def test_a_folder_in_the_files_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.h5").mkdir()
    with pytest.raises(SaveError, match="cannot be written: it is a folder"):
        gt.save(simple(), tmp_path / "a.h5")
    assert os.listdir(tmp_path) == ["a.h5"]


def test_a_target_is_looked_at_before_anything_is_traced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Long(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([])])
        def f(self, x: Any) -> Any:
            os.chdir(tmp_path / "elsewhere")
            return x * 1.0

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SaveError, match="it is a folder"):
        gt.save(Long(), "elsewhere")
    assert os.getcwd() == str(tmp_path)
    gt.save(Long(), "a.h5")  # where it was when the save began
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "elsewhere"]


class Crash(BaseException):
    """What no handler expects."""


def _full(*args: Any, **kwargs: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def _late(*args: Any, **kwargs: Any) -> Any:
    raise OSError(5, "Input/output error")


def _killed(*args: Any, **kwargs: Any) -> Any:
    raise Crash


@pytest.mark.parametrize("failure", [_full, _late, _killed])
@pytest.mark.parametrize(
    ("existing", "place"),
    [(True, "os.replace"), *((e, f"os.{p}") for e in (True, False) for p in ("fsync", "pwritev"))],
)
def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(
    failure: Any, place: str, existing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.h5"
    before = None
    if existing:
        gt.save(simple(), path)
        before = path.read_bytes()
    module = simple()
    module.w.assign([7.0, 8.0])
    module.v = gt.Variable(0.0)  # beside the other one: both are written with one call
    monkeypatch.setattr(place, failure)
    with pytest.raises((SaveError, Crash)) as caught:
        gt.save(module, path)
    monkeypatch.undo()
    if failure is not _killed:
        assert str(path) in str(caught.value)
        assert "cannot be written" in str(caught.value)
    assert (path.read_bytes() if existing else None) == before
    assert os.listdir(tmp_path) == (["model.h5"] if existing else [])


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_folder_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(SaveError, match=r"a\.h5: cannot be written"):
            gt.save(simple(), tmp_path / "a.h5")
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_an_existing_files_mode_is_kept_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    old, new = tmp_path / "old.h5", tmp_path / "new.h5"
    gt.save(simple(), old)
    old.chmod(0o640)
    gt.save(simple(), old)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    mask = os.umask(0o027)
    try:
        gt.save(simple(), new)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_saving_to_a_symbolic_link_replaces_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "model.h5", tmp_path / "link.h5"
    gt.save(simple(), real)
    link.symlink_to(real)
    module = simple()
    module.w.assign([5.0, 5.0])
    gt.save(module, link)
    assert link.is_symlink()
    assert gt.load(real).w.numpy().tolist() == [5.0, 5.0]


def test_readers_see_the_old_file_or_the_new_one_while_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    module = simple()
    gt.save(module, path)
    wrong: list[Any] = []

    def read() -> None:
        for _ in range(15):
            a, b = gt.load(path).w.numpy()
            if b != a + 1.0:
                wrong.append((a, b))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(15):
        module.w.assign([float(i), i + 1.0])
        gt.save(module, path)
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_file_that_is_open_elsewhere_is_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    module = simple()
    gt.save(module, path)
    held = gt.load(path, lazy=True)
    with h5py.File(path, "r") as file:
        module.w.assign([3.0, 4.0])
        gt.save(module, path)
        assert file["variables/w"][()].tolist() == [1.0, 2.0]
    assert held.w.numpy().tolist() == [1.0, 2.0]
    assert gt.load(path).w.numpy().tolist() == [3.0, 4.0]


def _raises() -> Any:
    raise ZeroDivisionError("by zero")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (lambda: None, r"get_config\(\) returned None \(is a return missing\?\) instead of a dict"),
        (lambda: [3], r"get_config\(\) returned \[3\] instead of a dictionary"),
        (_raises, r"get_config\(\) failed: ZeroDivisionError: by zero"),
        (lambda: {"rows": 3}, r"no argument 'rows'; it takes units, name, dtype"),
    ],
)
def test_a_wrong_get_config_is_named(config: Any, said: str, tmp_path: Path) -> None:
    class Own(gt.layers.Layer, saved_as="own.Own"):
        def __init__(layer, units: int = 3, **options: Any) -> None:
            super().__init__(**options)
            layer.units = units

        def get_config(self) -> Any:
            return config()

        def call(self, x: Any) -> Any:
            return x * self.units

    classes = gt.hookimpl(lambda: {"own.Own": Own})
    gt.register_plugin(SimpleNamespace(gradtape_modules=classes), "own")
    try:
        layer = Own()
        layer(gt.ones((1, 2)))
        with pytest.raises(SaveError, match=rf"module 'own' \(Own\).*{said}"):
            gt.save(layer, tmp_path / "model.h5")
    finally:
        gt.unregister_plugin("own")
    assert not os.listdir(tmp_path)


def test_an_example_of_the_input_is_no_signature(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"signatures must be a dictionary .*, got ndarray"):
        gt.save(gt.Module(), tmp_path / "m.h5", np.ones(3))
