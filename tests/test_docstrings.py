"""Every public function and class explains itself: sections, each parameter, examples that run.

``python tests/test_docstrings.py`` lists the names that fall short, with what each of them lacks.
"""

from __future__ import annotations

import doctest
import enum
import inspect
import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

MODULES = (
    "",
    "datasets",
    "debug",
    "fft",
    "image",
    "interop.jax",
    "interop.torch",
    "layers",
    "linalg",
    "nn",
    "plot",
    "plugin",
    "random",
    "saving",
    "sklearn",
    "testing",
    "training",
)

#: What takes arguments and refuses none of them. What takes no arguments need not be named.
CANNOT_RAISE = frozenset(
    {
        "GradientTape",
        "Tensor",
        "disable_plugin",
        "hookimpl",
        "plugin.Backend",
        "plugin.Communicator",
        "plugin.Engine",
        "plugin.Graph",
        "plugin.Node",
        "plugin.PluginInfo",
        "plugin.Read",
        "plugin.Sender",
        "plugin.Stopwatch",
        "plugin.argument_of",
        "plugin.as_batched",
        "plugin.begin_step",
        "plugin.by_backend",
        "plugin.default",
        "plugin.known_size",
        "plugin.plain",
        "plugin.same_shape",
        "plugin.same_size",
        "plugin.set_arrays",
        "plugin.shapes_differ",
        "plugin.sizes_differ",
        "recompute_grad",
        "saving.Difference",
        "saving.Inspection",
        "saving.Report",
        "saving.WeightsReport",
        "testing.BackendReport",
        "testing.PluginReport",
        "testing.Report",
        "testing.Sample",
        "training.RestoreReport",
    }
)


def public() -> dict[str, Any]:
    """Return gradtape's own functions and classes, by public name; each of them once."""
    found: dict[int, tuple[str, Any]] = {}
    for path in MODULES:
        module = attrgetter(path)(gt) if path else gt
        for name in dir(module) if module is gt else module.__all__:
            thing = getattr(module, name)
            ours = str(getattr(thing, "__module__", "")).startswith("gradtape")
            error = isinstance(thing, type) and issubclass(thing, BaseException)
            if ours and callable(thing) and not error and not name.startswith("_"):
                found.setdefault(id(thing), (f"{path}.{name}".lstrip("."), thing))
    return dict(sorted(found.values(), key=lambda pair: pair[0]))


# -- what is demanded ------------------------------------------------------------------------------


def sections_of(text: str) -> dict[str, str]:
    """Return the sections of a docstring by title; what comes before them is ``""``."""
    parts = re.split(r"^(\S.*)\n-{3,}$", text, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(section: str) -> set[str]:
    """Return the names that a section describes: those at the left margin."""
    heads = (line.partition(" : ")[0] for line in section.splitlines() if line[:1].strip())
    return {name.strip("* ") for head in heads for name in head.split(",")}


def parameters_of(thing: Any) -> list[inspect.Parameter]:
    if isinstance(thing, type) and issubclass(thing, enum.Enum):
        return []
    return list(inspect.signature(thing).parameters.values())


def returns_something(thing: Any) -> bool:
    annotation = None if isinstance(thing, type) else inspect.signature(thing).return_annotation
    return annotation not in (None, "None")


def faults_of(name: str, thing: Any) -> Iterator[str]:
    """Give what a docstring lacks, in words."""
    text = inspect.getdoc(thing) or ""
    sections = sections_of(text)
    if not re.match(r"\S.*\.(\n\n|\n?$)", sections[""]):
        yield "no summary of one line that ends with a full stop"
    parameters = parameters_of(thing)
    told = described(sections.get("Parameters", ""))
    if isinstance(thing, type):  # what is not made by users may tell what it holds
        told |= described(sections.get("Attributes", ""))
    missing = [p.name for p in parameters if p.name not in told]
    if missing:
        yield f"parameters that are not described: {', '.join(missing)}"
    if returns_something(thing) and not {"Returns", "Yields"} & set(sections):
        yield "no section Returns"
    if parameters and "Raises" not in sections and name not in CANNOT_RAISE:
        yield "no section Raises"
    yield from faults_of_examples(name, sections.get("Examples", ""))


class SameButForTimes(doctest.OutputChecker):
    """Compares what an example prints; a time that it took is any time."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        want, got = (re.sub(r"\b[\d.]+ (s|ms|µs)\b", r"# \1", text) for text in (want, got))
        return super().check_output(want, got, optionflags)


def faults_of_examples(name: str, section: str) -> Iterator[str]:
    test = doctest.DocTestParser().get_doctest(section, {"gt": gt, "np": np}, name, None, 0)
    if not test.examples:
        yield "no examples"
    told: list[str] = []
    doctest.DocTestRunner(SameButForTimes(), verbose=False).run(test, out=told.append)
    yield from told


# -- the tests -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep what an example changes from other tests: files, numbers drawn, dtype, rules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    dtype = gt.default_dtype()
    changeable = ("vjp", "rules", "rules_provider", "jvp")
    rules = [(op, {x: getattr(op, x) for x in changeable}) for op in gt.registry().ops.values()]
    gt.random.set_seed(0)
    yield
    gt.random.set_seed(0)
    gt.set_default_dtype(dtype)
    for op, known in rules:
        for x, value in known.items():
            if getattr(op, x) is not value:
                setattr(op, x, value)


@pytest.mark.parametrize("name", list(public()))
def test_a_public_name_explains_itself(name: str) -> None:
    faults = list(faults_of(name, public()[name]))
    assert not faults, "\n".join((name, *faults))


def test_what_a_family_shares_is_filled_in() -> None:
    modules = [gt.layers, gt.training, gt.training.losses, gt.training.metrics]
    things = [getattr(module, name) for module in modules for name in module.__all__]
    docs = {repr(thing): inspect.getdoc(thing) or "" for thing in things}
    left = re.compile(r"{(axes|constraint|dtype|name|rules|\d+)}")
    assert [name for name, doc in docs.items() if left.search(doc)] == []
    assert "(2, 6, 6, 6, 3)" in gt.layers.Cropping3D.__doc__
    own = type("Own", (gt.layers.Dropout,), {"__doc__": "Mine.", "__module__": "mine"})
    assert own.__doc__ == "Mine."


def test_names_in_the_list_are_public() -> None:
    assert public().keys() >= CANNOT_RAISE


def good(x: Any, axis: int = 0) -> Any:
    """Return ``x``.

    Parameters
    ----------
    x, axis
        Anything.

    Returns
    -------
    The same.

    Raises
    ------
    TypeError
        Never.

    Examples
    --------
    >>> gt.sum(gt.constant([1.0, 2.0])).item()
    3.0
    """
    return x


def variant(old: str, new: str) -> Callable[..., Any]:
    """Return ``good`` with another docstring."""

    def changed(x: Any, axis: int = 0) -> Any:
        return x

    changed.__doc__ = inspect.getdoc(good).replace(old, new)
    return changed


def test_a_full_docstring_has_no_faults() -> None:
    assert not list(faults_of("good", good))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Return ``x``.", "", "no summary"),
        ("Return ``x``.", "Return ``x``\nas it is.", "no summary"),
        ("x, axis\n", "x\n", "not described: axis"),
        ("Parameters\n----------\n", "", "not described: x, axis"),
        ("Returns\n-------\n", "", "no section Returns"),
        ("Raises\n------\n", "", "no section Raises"),
        (">>> ", "", "no examples"),
        ("3.0", "3.5", "Got:\n    3.0"),
        (".item()", ".nothing", "AttributeError"),
    ],
)
def test_each_fault_is_found(old: str, new: str, fault: str) -> None:
    assert fault in "\n".join(faults_of("bad", variant(old, new)))


if __name__ == "__main__":
    for public_name, public_thing in public().items():
        lacking = "; ".join(faults_of(public_name, public_thing))
        if lacking:
            print(f"{public_name}: {' '.join(lacking.split())}")
