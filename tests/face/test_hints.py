"""What is said of methods and attributes that other libraries have."""

from __future__ import annotations

import copy
import functools
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import hints


class Net(gt.Module):
    """A model of a user."""

    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable([1.0])

    def __call__(self, x: Any) -> Any:
        return self.w * x


def built() -> gt.layers.Sequential:
    model = gt.layers.Sequential([gt.layers.Dense(2)])
    model(gt.ones((1, 3)))
    return model


OBJECTS: dict[str, Callable[[], Any]] = {
    "Tensor": lambda: gt.ones(2),
    "Variable": lambda: gt.Variable([1.0]),
    "Module": Net,
    "Sequential": built,
    "Dense": lambda: built().layers[0],
    "Optimizer": gt.training.Adam,
    "GradientTape": gt.GradientTape,
}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "Tensor",
            "backward detach requires_grad grad view permute unsqueeze cpu data clone contiguous "
            "float long add_ exp softmax numel",
        ),
        ("Variable", "backward detach requires_grad grad data to zero_grad view exp"),
        (
            "Module",
            "fit compile predict evaluate save train eval parameters named_parameters state_dict "
            "load_state_dict add cuda zero_grad forward children",
        ),
        ("Sequential", "fit compile predict evaluate save train eval parameters state_dict"),
        ("Dense", "weight add forward cuda"),
        ("Optimizer", "zero_grad step param_groups lr state_dict"),
        ("GradientTape", "backward grad gradients"),
    ],
)
def test_a_name_of_another_library_says_what_to_use(kind: str, names: str) -> None:
    thing = OBJECTS[kind]()
    for name in names.split():
        with pytest.raises(AttributeError) as caught:
            getattr(thing, name)
        said = str(caught.value)
        assert said.startswith(f"{type(thing).__name__!r} object has no attribute {name!r}; ")
        assert not hasattr(thing, name)
        assert getattr(thing, name, 7) == 7
        assert str(pickle.loads(pickle.dumps(caught.value))) == said


@pytest.mark.parametrize("change", [lambda x, name: setattr(x, name, None), delattr])
@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("Tensor", "grad", "leave it out: tape.gradient returns new gradients each time"),
        ("Variable", "grad", "leave it out: tape.gradient returns new gradients each time"),
        ("Tensor", "data", "use gt.Variable, which has assign: a tensor never changes"),
        ("Variable", "data", "use v.assign(value) to set the value, or v.numpy() to read it"),
        ("Tensor", "requires_grad", "use gt.Variable for weights, or tape.watch(x)"),
        ("Variable", "requires_grad", "use v.trainable"),
    ],
)
def test_setting_such_a_name_says_what_to_use(kind: str, name: str, said: str, change: Any) -> None:
    with pytest.raises(AttributeError) as caught:
        change(OBJECTS[kind](), name)
    assert str(caught.value) == f"{kind!r} object has no attribute {name!r}; {said}"


class Named:
    """A mixin with a property."""

    kept = 1

    @property
    def data(self) -> int:
        return self.kept

    @data.setter
    def data(self, value: int) -> None:
        self.kept = value


class Own(gt.Variable, Named):
    """A variable with attributes of its own."""


def test_a_subclass_sets_and_reads_such_names() -> None:
    v: Any = Own(1.0)
    with pytest.raises(AttributeError, match=r"use tape\.gradient"):
        _ = v.grad
    v.grad, v.data = 3, 4
    assert (v.grad, v.data, v.kept) == (3, 4, 4)
    del v.grad
    with pytest.raises(AttributeError, match="leave it out"):
        del v.grad


def test_a_class_says_it_too() -> None:
    with pytest.raises(AttributeError, match="type object 'Tensor' has no attribute 'cuda'; use"):
        _ = gt.Tensor.cuda  # type: ignore[attr-defined]


def test_files_hold_attributes_with_these_names(tmp_path: Path) -> None:
    net = Net()
    net(gt.ones(1))
    net.weights, net.loss = gt.Variable([2.0]), Net()  # type: ignore[attr-defined]
    gt.save(net, tmp_path / "net.h5")
    loaded = gt.load(tmp_path / "net.h5")
    assert loaded.weights.tolist() == [2.0]
    assert list(loaded.loss.named_variables) == ["w"]
    with pytest.raises(AttributeError, match=r"has no 'fit'; .* __call__; use gt.training.fit"):
        loaded.fit()


MODULES = ("Module", "Dense")


@pytest.mark.parametrize("kind", ["Tensor", "Variable", *MODULES, "GradientTape"])
def test_a_name_with_a_hint_is_not_listed(kind: str) -> None:
    thing = OBJECTS[kind]()
    listed = dir(thing)
    assert set(listed).isdisjoint(hints.INSTEAD["Module" if kind in MODULES else kind])
    assert {name for name in listed if name[0] == "_" != name[1]} <= {"_name"}


def test_a_users_private_names_are_listed() -> None:
    net = Net()
    net._mine = 1  # type: ignore[attr-defined]
    assert "_mine" in dir(net)


@pytest.mark.parametrize(
    "code", ["gt.ones(2).read", "gt.GradientTape().used", "gt.training.Adam().decays_at"]
)
def test_a_traceback_suggests_no_private_name(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import gradtape as gt; {code}"], capture_output=True, text=True
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("AttributeError")
    assert "'_" not in last


class Fitting:
    """A mixin after the module in the order of inheritance."""

    data = "of the mixin"

    def fit(self) -> str:
        return f"fitted {type(self).__name__}"

    @property
    def parameters(self) -> int:
        return 3


class Mixed(Net, Fitting):
    def forward(self) -> str:
        return "forward"

    def train(self) -> Any:
        return super().train()  # type: ignore[misc]


def test_attributes_of_users_win_over_hints() -> None:
    model = Mixed()
    assert model.fit() == "fitted Mixed"
    assert model.parameters == 3
    assert Mixed.data == model.data == "of the mixin"
    assert model.forward() == "forward"
    with pytest.raises(AttributeError, match="no attribute 'train'; use"):
        model.train()
    model.eval = lambda: "set"  # type: ignore[attr-defined]
    assert model.eval() == "set"
    assert copy.deepcopy(model).parameters == 3


class Wrapper:
    """Passes what it lacks on to a model, as users write it."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def test_programs_that_probe_find_nothing() -> None:
    assert not hasattr(Wrapper(Net()), "fit")
    assert np.asarray(gt.ones(2)).tolist() == [1.0, 1.0]
    assert [x for x in ("detach", "cpu", "data") if hasattr(gt.ones(2), x)] == []


class Forward(gt.Module):
    """Written as for PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable(2.0)

    def forward(self, x: Any) -> Any:
        return self.w * x


class ForwardModel(gt.Model):
    def forward(self, x: Any) -> Any:
        return x


class Called(Forward):
    def __call__(self, x: Any) -> Any:
        return self.forward(x)


def test_a_mixin_may_call_forward() -> None:
    class Calling:
        def __call__(self, x: Any) -> Any:
            return self.forward(x)  # type: ignore[attr-defined]

    class Doubled(gt.Module):
        def forward(self, x: Any) -> Any:
            return 2 * x

    class Both(Doubled, Calling):
        pass

    assert Both()(gt.ones(2)).tolist() == [2.0, 2.0]


def test_forward_without_a_call_says_how_to_name_it(tmp_path: Path) -> None:
    with pytest.raises(
        TypeError, match=r"Forward defines forward.*__call__ of a Module.*rename it"
    ):
        Forward()(1.0)
    with pytest.raises(NotImplementedError, match="rename its method forward to call"):
        ForwardModel()(gt.ones(1))
    assert Called()(3.0).item() == Forward().forward(3.0).item() == 6.0
    gt.save(Forward(), tmp_path / "forward.h5")
    assert gt.load(tmp_path / "forward.h5").w.item() == 2.0


DATA = np.ones((2, 3), "float32"), np.array([0, 1])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("gt.layers.Dense(2, activation=gt.layers.ReLU)", r"the class ReLU; pass an object: ReLU"),
        ("gt.layers.Flatten(gt.ones(2))", r"make the module first, then call it: Flatten"),
        ("gt.training.fit(built(), DATA, learning_rate=0.1)", r"use optimizer=gradtape.training"),
        ("gt.training.fit(built(), DATA, n_epochs=1)", r"no argument 'n_epochs'; use epochs"),
        ("gt.training.fit(built(), DATA, epoch=1)", r"did you mean 'epochs'"),
        ("gt.training.evaluate(built(), DATA, verbos=1)", r"evaluate takes no argument 'verbos'"),
        ("gt.training.Adam(built().trainable_variables)", r"got a tuple; .*apply_gradients"),
        ("gt.training.SGD(built())", r"got a Sequential; .*apply_gradients"),
        ("gt.training.losses.MeanSquaredError(*DATA)", r"MeanSquaredError\(\)\(y_true, y_pred\)"),
        ("gt.Variable(gt.float32)", r"the initial value is the class float32"),
        ("gt.Variable(1.0, requires_grad=True)", r"no argument 'requires_grad'; use trainable"),
        ("gt.Variable(1.0, shape=(2,))", r"no argument 'shape'; use an initial value"),
        ("gt.random.normal(0.0, 1.0, (2, 3))", r"random.normal: the shape comes first"),
        ("gt.random.uniform(0, 1, (2,))", r"random.uniform: the shape comes first"),
        ("gt.random.randint(0, 10, (2,))", r"random.randint: the shape comes first"),
        ("gt.ones(2, 3)", r"3 is not a dtype.*several sizes as one tuple"),
        ("gt.nn.dropout(gt.ones(2), 0.5, True)", r"must be a gradtape.random.Generator, got True"),
        ("gt.training.Checkpoint(built())", r"give each object a name: Checkpoint\(model=model\)"),
    ],
)
def test_a_mistake_of_a_newcomer_says_what_to_write(code: str, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        eval(code)


@pytest.mark.parametrize("code", ["Add()(1.0, 2.0)", "Conv2D(kernel_size=3)", "Dropout(p=0.5)"])
def test_errors_about_arguments_name_no_private_class(code: str) -> None:
    with pytest.raises(TypeError) as caught:
        eval(f"gt.layers.{code}")
    assert "._" not in str(caught.value)
    assert re.match("_[A-Z]", str(caught.value)) is None


# -- hints of plugins ------------------------------------------------------------------------------


@pytest.fixture
def plugin() -> Iterator[Callable[[Any], None]]:
    def register(provided: Any) -> None:
        gt.register_plugin(
            SimpleNamespace(gradtape_hints=gt.hookimpl(lambda: provided)), "acme_hints"
        )

    yield register
    if any(info.name == "acme_hints" for info in gt.registry().plugins):
        gt.unregister_plugin("acme_hints")


def said_of(thing: Any, name: str) -> str:
    with pytest.raises(AttributeError) as caught:
        getattr(thing, name)
    return str(caught.value).partition("; ")[2]


def test_a_plugin_adds_hints_and_replaces_some(plugin: Callable[[Any], None]) -> None:
    own: Mapping[str, Mapping[str, str]] = {
        "": {"acme": "acme.run(x)", "cat": "acme.cat(x)"},
        "Tensor": {"acme": "acme.run(x)", "view": "acme.view(x)"},
        "training.Optimizer": {"acme": "acme.step()"},
    }
    before = said_of(gt, "cat"), said_of(gt.ones(2), "view")
    plugin(own)
    assert said_of(gt, "acme") == said_of(gt.ones(2), "acme") == "use acme.run(x)"
    assert said_of(gt, "cat") == "use acme.cat(x)"
    assert said_of(gt.Variable(1.0), "view") == "use acme.view(x)"
    assert said_of(gt.training.SGD(0.1), "acme") == "use acme.step()"
    gt.unregister_plugin("acme_hints")
    assert (said_of(gt, "cat"), said_of(gt.ones(2), "view")) == before
    assert said_of(gt.ones(2), "acme") == ""
    assert "acme" not in hints.INSTEAD["Tensor"]


@pytest.mark.parametrize("wrong", [None, {"Tensor": None}, {"Tensor": {"a": 1}}, {1: {}}])
def test_wrong_hints_are_named(plugin: Callable[[Any], None], wrong: Any) -> None:
    with pytest.raises(gt.errors.PluginError, match="gradtape_hints returned"):
        plugin(wrong)


def test_hints_for_a_class_that_shows_none_are_refused(plugin: Callable[[Any], None]) -> None:
    with pytest.raises(gt.errors.PluginError, match=r"the class 'layers\.Dense'; .*layers\.Layer"):
        plugin({"layers.Dense": {"acme": "acme.run(x)"}})
    for place in hints.CLASSES:
        plugin({place: {"acme": "acme.run(x)"}})
        assert "use acme.run(x)" in said_of(functools.reduce(getattr, place.split("."), gt), "acme")
        gt.unregister_plugin("acme_hints")
