"""LLVM, JAX, and our own layers and training, are imported by those who use them alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LIBRARIES = ("numba", "llvmlite", "jax", "jaxlib", "threadpoolctl", "torch", "onnx")

TRAINING = """
import gradtape as gt
model = gt.layers.Sequential([gt.layers.Dense(4, activation="relu"), gt.layers.Dense(2)])
adam = gt.training.Adam(0.01)
x, labels = gt.ones((3, 5)), gt.constant([0, 1, 1])
model(x)

@gt.function
def step(x, labels):
    with gt.GradientTape() as tape:
        losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(x))
        loss = gt.mean(losses)
    variables = model.trainable_variables
    adam.apply_gradients(zip(tape.gradient(loss, variables), variables))

for _ in range(6):
    step(x, labels)
"""


PARTS = tuple(f"gradtape.{part}" for part in ("data", "layers", "plot", "sklearn", "training"))


def imported(
    code: str, executor: str | None = None, names: tuple[str, ...] = LIBRARIES
) -> set[str]:
    """Return which of the named modules a new process has imported after some code."""
    told = f"{code}\nimport sys; print([x for x in {names!r} if x in sys.modules])"
    settings = {k: x for k, x in os.environ.items() if k != "GRADTAPE_EXECUTOR"}
    if executor:
        settings["GRADTAPE_EXECUTOR"] = executor
    run = subprocess.run(
        [sys.executable, "-c", told],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd="/",
        env=settings,
    )
    return set(eval(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import gradtape",
        "import gradtape as gt; gt.constant(1.0) + 1.0",
        "import gradtape as gt; gt.registry(); gt.testing; gt.training",
        "import gradtape as gt; gt.registry().backends; gt.registry().executors",
        TRAINING.replace("@gt.function", ""),
    ],
)
def test_eager_programs_import_none_of_them(code: str) -> None:
    assert imported(code) == set()


@pytest.mark.parametrize("executor", ["plain", "planned"])
def test_an_executor_for_numpy_alone_imports_none_of_them(executor: str) -> None:
    import gradtape as gt

    if executor not in gt.registry().executors:
        pytest.skip(f"no executor {executor}")
    assert imported(TRAINING, executor) == set()


def test_a_compiled_program_of_few_calls_imports_none_of_them() -> None:
    assert imported(TRAINING.replace("range(6)", "range(3)")) == set()


def test_a_compiled_program_imports_no_jax() -> None:
    assert not imported(TRAINING) & {"jax", "jaxlib", "torch", "onnx"}


@pytest.mark.parametrize(
    "code",
    [
        "import gradtape",
        "import gradtape as gt; gt.add(1, 2)",
        "import gradtape as gt; x = gt.ones(3); gt.function(gt.sin)(x); gt.vmap(gt.sin)(x)",
        "import gradtape as gt; gt.registry().op('add'); gt.registry().owner('op', 'add')",
    ],
)
def test_programs_without_models_import_no_layers_and_no_training(code: str) -> None:
    assert imported(code, names=PARTS) == set()


@pytest.mark.parametrize(
    "asked",
    [
        "gt.registry().modules",
        "[name for info in gt.registry().plugins for name in info.modules]",
        "[name for name in ['layers.Dense'] if gt.registry().owner('module', name)]",
    ],
)
def test_classes_are_there_when_they_are_asked_for(asked: str) -> None:
    code = f"import gradtape as gt; gt.add(1, 2); assert 'layers.Dense' in {asked}"
    assert "gradtape.layers" in imported(code, names=PARTS)


def test_a_class_of_a_reserved_name_is_refused_at_once() -> None:
    code = """
import gradtape as gt
from types import SimpleNamespace
plugin = SimpleNamespace(gradtape_modules=gt.hookimpl(lambda: {"layers.Dense": gt.Module}))
try:
    gt.register_plugin(plugin, "mine")
except gt.errors.PluginError as error:
    assert "cannot be called 'layers.Dense'" in str(error), error
else:
    raise AssertionError
assert gt.registry().modules["layers.Dense"] is gt.layers.Dense
"""
    imported(code)
