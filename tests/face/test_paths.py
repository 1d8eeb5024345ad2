"""Objects go by their public path: in errors, in ``repr``, in ``help`` and in pickles."""

from __future__ import annotations

import enum
import inspect
import pickle
import pydoc
import subprocess
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any, get_type_hints

import pytest

import gradtape as gt
from gradtape.plugin import Op
from gradtape.public import HOMES


def public_objects() -> Iterator[tuple[str, str, Any]]:
    """Give our functions and classes, each with the public module and the name that it is under."""
    for name, home in HOMES.items():
        value = getattr(gt, name)
        if home != ".":
            yield "gradtape", name, value
        else:
            names = vars(value).get("__all__", ())
            yield from ((value.__name__, part, getattr(value, part)) for part in names)


OWN = [
    pytest.param(module, name, value, id=f"{module}.{name}")
    for module, name, value in public_objects()
    if isinstance(value, (FunctionType, type)) and value.__module__.startswith("gradtape")
]


@pytest.mark.parametrize(("module", "name", "value"), OWN)
def test_a_public_path_leads_to_the_object(module: str, name: str, value: Any) -> None:
    if value.__module__ not in ("gradtape", "gradtape.errors", module):
        assert value.__name__ != name or HOMES.get(name) == ".", "another public module has it"
    assert getattr(sys.modules[value.__module__], value.__name__) is value
    assert pickle.loads(pickle.dumps(value)) is value
    if isinstance(value, FunctionType):
        assert value.__name__ in inspect.getsource(value)


@pytest.mark.parametrize("name", ["GradientTape", "Tensor", "ForwardAccumulator"])
def test_errors_of_arguments_name_the_class_that_is_called(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) got an unexpected keyword"):
        getattr(gt, name)(gt.constant(1.0), no_such_argument=True)


def test_errors_of_a_method_name_it_as_it_is_called() -> None:
    for name in ("to", "__array_namespace__"):
        with pytest.raises(TypeError, match=rf"^\w+\.{name}\(\) got an unexpected keyword"):
            getattr(gt.constant(1.0), name)(no_such_argument=True)


CLASSES = [param for param in OWN if isinstance(param.values[2], type)]


@pytest.mark.parametrize(("module", "name", "value"), CLASSES)
def test_annotations_of_a_class_can_be_evaluated_in_subclasses(
    module: str, name: str, value: Any
) -> None:
    assert get_type_hints(value) is not None
    if not isinstance(value, enum.EnumMeta):

        class Own(value):
            width: int

        assert get_type_hints(Own)["width"] is int


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("Tensor", "gradtape"),
        ("grad", "gradtape"),
        ("load", "gradtape"),
        ("saving.load", "gradtape"),
        ("linalg.dot", "gradtape"),
        ("linalg.diagonal", "gradtape.linalg"),
        ("diagonal", "gradtape"),
        ("nn.softmax", "gradtape.nn"),
        ("fft.fft", "gradtape.fft"),
        ("random.Generator", "gradtape.random"),
        ("errors.TraceError", "gradtape.errors"),
        ("saving.LoadError", "gradtape.saving"),
        ("layers.Dense", "gradtape.layers"),
        ("layers.initializers.Zeros", "gradtape.layers.initializers"),
        ("training.Adam", "gradtape.training"),
        ("testing.check_op", "gradtape.testing"),
        ("plot.jacobian", "gradtape.plot"),
    ],
)
def test_objects_are_of_the_module_where_users_find_them(path: str, module: str) -> None:
    value: Any = gt
    for part in path.split("."):
        value = getattr(value, part)
    assert value.__module__ == module


@pytest.mark.parametrize(
    "code",
    [
        "import gradtape.linalg; print(gradtape.linalg.dot.__module__)",
        "import gradtape; gradtape.linalg; print(gradtape.dot.__module__)",
        "import gradtape; gradtape.dot; print(gradtape.linalg.dot.__module__)",
        "import gradtape.saving; print(gradtape.saving.load.__module__)",
        "from gradtape.core.extend import Module; print(Module.__module__)",
        "import gradtape; print(type(gradtape.constant(1.0)).__module__)",
        "import gradtape; print(type(gradtape.eye(2)).__module__)",
        "import gradtape.layers; print(gradtape.layers.Dense.__mro__[2].__module__)",
    ],
)
def test_the_path_does_not_depend_on_what_is_imported_first(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "gradtape"


def test_help_shows_the_public_path() -> None:
    assert "function softmax in module gradtape.nn" in pydoc.render_doc(gt.nn.softmax)
    assert "class Tensor in module gradtape\n" in pydoc.render_doc(
        gt.Tensor, renderer=pydoc.plaintext
    )
    assert repr(gt.layers.Dense) == "<class 'gradtape.layers.Dense'>"


def test_help_shows_an_op_as_a_function() -> None:
    title, _, call, first, *_ = pydoc.render_doc(gt.nn.relu, renderer=pydoc.plaintext).splitlines()
    assert title.endswith(" in module gradtape.core.extend")  # the kind differs with the Python
    assert call.startswith("relu(x, /")
    assert first.strip()


def test_a_traceback_shows_the_public_path() -> None:
    code = "import gradtape as gt\n@gt.function\ndef f(x): return float(x)\nf(gt.constant(1.0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "\ngradtape.errors.TraceError: " in done.stderr


def test_an_object_of_no_public_module_keeps_its_path() -> None:
    assert type(gt.core.extend.ops).__module__ == "gradtape.core.base.table"


def test_what_plugin_authors_use_goes_by_its_door() -> None:
    code = "from gradtape.plugin import Op; print(Op)"  # gradtape.plugin is not imported
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "<class 'gradtape.plugin.Op'>\n"
    assert gt.plugin.Op is Op
    assert gt.Module.__module__ == "gradtape"


def test_the_contract_is_small_and_part_of_what_gradtapes_own_packages_use() -> None:
    names = gt.plugin.__all__
    assert len(names) <= 55
    for name in names:
        assert getattr(gt.plugin, name) is getattr(gt.core.extend, name)


def test_ops_are_pickled_by_name() -> None:
    assert isinstance(gt.nn.relu, Op)
    assert pickle.loads(pickle.dumps(gt.nn.relu)) is gt.nn.relu
