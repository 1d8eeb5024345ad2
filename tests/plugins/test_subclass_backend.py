"""A third-party backend whose arrays are a subclass of NumPy's, in a module of its package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import PluginError
from gradtape.plugin import Backend, hookimpl
from gradtape.testing import check_backend

HOME = "thirdparty.arrays"


class Units(np.ndarray[Any, Any]):
    """Arrays of the library."""


Units.__module__ = HOME


def _as_units(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value).view(Units)
    if type(value) in (tuple, list):
        return type(value)(map(_as_units, value))
    return type(value)(*map(_as_units, value)) if hasattr(value, "_fields") else value


class Namespace:
    """NumPy's functions, whose results are the library's arrays."""

    def __init__(self, module: Any = np) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.module, name)
        if isinstance(found, ModuleType):
            return Namespace(found)
        plain = isinstance(found, type) or not callable(found) or name in ("finfo", "result_type")
        return found if plain else self.wrapped(found)

    @staticmethod
    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose results are the library's."""
        return lambda *args, **kwargs: _as_units(function(*args, **kwargs))


class UnitsBackend(Backend):
    """The backend."""

    name = "units"
    array_module = HOME
    xp = Namespace()

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        return np.array(value, dtype=dtype).view(Units)

    def to_numpy(self, array: Any) -> Any:
        return np.array(array)


class Aliasing(UnitsBackend):
    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        return np.asarray(value, dtype=dtype).view(Units)


class Elsewhere(UnitsBackend):
    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        return np.array(value, dtype=dtype)


class Reversed(UnitsBackend):
    def to_numpy(self, array: Any) -> Any:
        return np.array(array)[::-1]


class Numbered(UnitsBackend):
    def device(self, array: Any) -> Any:
        return 0


class Idle(UnitsBackend):
    def updating(self, formula: Any) -> Any:
        return lambda flat, gradients, settings: [x + 0.0 for x in flat]


@pytest.mark.parametrize(
    ("kind", "method", "words"),
    [
        (Aliasing, "asarray", "it made no copy"),
        (Elsewhere, "asarray", "it returned ndarray, which is not an array of the backend"),
        (Reversed, "asarray", "to_numpy gave"),
        (Numbered, "device", "it returned 0, not a text"),
        (Idle, "updating", "two steps of SGD gave"),
    ],
)
def test_methods_that_do_not_do_what_they_must(kind: Any, method: str, words: str) -> None:
    hook = hookimpl(tryfirst=True)(lambda: [kind()])
    with gt.register_plugin(SimpleNamespace(gradtape_backends=hook), "careless"):
        report = check_backend("units", only=["sin"], show=False)
    assert words in report.wrong[f"Backend.{method}"]


def test_methods_that_do_what_they_must() -> None:
    assert check_backend("units", only=["sin"], show=False).passed == ["sin"]


class Plugin:
    @staticmethod
    @hookimpl
    def gradtape_backends() -> list[Backend]:
        return [UnitsBackend()]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with gt.register_plugin(Plugin(), "units"):
        yield


def test_an_array_module_may_be_inside_a_package() -> None:
    assert UnitsBackend().owns(Units)
    other = type("Units", (), {"__module__": f"{HOME}_of_others"})
    assert not UnitsBackend().owns(other)
    assert UnitsBackend().owns(type("Part", (), {"__module__": f"{HOME}.parts"}))


@pytest.mark.parametrize("module", [HOME, "thirdparty", f"{HOME}.parts", "numpy.ma"])
def test_a_backend_that_shares_a_package_is_refused(module: str) -> None:
    other = type("Other", (UnitsBackend,), {"name": "other", "array_module": module})
    plugin = SimpleNamespace(gradtape_backends=hookimpl(lambda: [other()]))
    with pytest.raises(PluginError, match="'other' claims the arrays of"):
        gt.register_plugin(plugin, "other")


def test_draws_are_arrays_of_the_keys_backend() -> None:
    draws = [f"random_{x}" for x in ("exponential", "gumbel", "normal", "uniform")]
    report = check_backend("units", only=[*draws, "sin", "matmul"], show=False)
    assert not report.wrong
    assert not report.refused


def test_a_model_trains() -> None:
    with gt.backend("units"):
        model = gt.layers.Sequential(
            [gt.layers.Dense(3, activation="relu"), gt.layers.Dropout(0.5)]
        )
        x = np.ones((8, 2), "float32")
        gt.training.fit(
            model, (x, np.ones((8, 3), "float32")), optimizer="adam", loss="mse", verbose=False
        )
        assert type(model(x).array) is Units
