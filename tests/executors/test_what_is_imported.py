"""LLVM and JAX are imported by those who use them alone."""

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


def imported(code: str, executor: str | None = None) -> set[str]:
    """Return which of the libraries a new process has imported after some code."""
    told = f"{code}\nimport sys; print([x for x in {LIBRARIES!r} if x in sys.modules])"
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


def test_a_compiled_program_imports_no_jax() -> None:
    assert not imported(TRAINING) & {"jax", "jaxlib", "torch", "onnx"}
