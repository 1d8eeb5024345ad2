"""Write docs/peers.md: beside what each layer, optimizer, loss, metric and callback is checked.

It is made from the tables of values that the suite holds them to.

python docs/make_peers_table.py            # write the page
python docs/make_peers_table.py --check    # exit with 1 if it is not up to date
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "peers.md"
TESTS = ROOT / "tests"
sys.path += [str(TESTS), str(TESTS / "layers"), str(TESTS / "training"), str(ROOT / "docs")]

import test_against_pytorch as pytorch  # noqa: E402
import test_layer_families as families  # noqa: E402
import test_losses_of_keras as losses  # noqa: E402
import test_metrics_of_keras as metrics  # noqa: E402
import test_optimizers_of_keras as optimizers  # noqa: E402
import test_schedules as schedules  # noqa: E402
from generated_pages import markdown_rows, write_or_check  # noqa: E402

import gradtape as gt  # noqa: E402

HEAD = """# Comparison with Keras and PyTorch

This page says how the tests compare gradtape's layers, losses, metrics and optimizers with those
of Keras and PyTorch. Names, order and defaults of the layers' arguments are also compared with
those of Keras 3.15 (`tests/layers/test_keras_signatures.py`), with a reason for each difference.

- *values*: how many calls, runs or sequences are compared with stored results of Keras 3 on JAX,
  and with PyTorch's results in the test.
- *gradients*: up to which order they are compared with finite differences, with respect to inputs
  and to weights.

`python docs/make_peers_table.py` writes this page from the tables of the test suite, which fails if
the page is out of date.
"""
#: Layers that have no values of their own, and why.
OTHERWISE = {
    "Lambda": "the result of its function",
    "Layer": "the base class of layers",
    "Model": "the result of its layers",
    "Sequential": "the result of its layers",
}
#: What has no numbers of a peer: the tests of its behaviour.
TRAINING = {
    "metrics": {
        "ConfusionMatrix": "test_metrics_of_keras.py, by MeanIoU",
        "Mean": "test_metrics.py",
        "MeanMetricWrapper": "test_metrics.py",
        "Sum": "test_metrics.py",
    },
    "optimizers": {"LBFGS": "PyTorch's 20 steps, SciPy's minimum: test_lbfgs.py"},
}


def within(settings: Any) -> Iterator[str]:
    """Give the names of layers in the settings of another."""
    if isinstance(settings, dict):
        settings = list(settings.values())
    if isinstance(settings, list):
        if len(settings) == 2 and isinstance(settings[0], str) and isinstance(settings[1], dict):
            yield settings[0]
        for part in settings:
            yield from within(part)


def layers() -> Iterator[tuple[str, ...]]:
    """Give a row for each layer."""
    stored = json.loads((TESTS / "layers" / "keras_values.json").read_text(encoding="utf-8"))
    keras = Counter(row[0] for row in stored)
    keras.update(name for row in stored for name in within(row[1]))
    torch = Counter(name.split()[0] for name in pytorch.CASES)
    known = {name.split()[0]: case for name, case in families.FAMILIES.items()}
    for name in sorted(n for n in gt.layers.__all__ if isinstance(getattr(gt.layers, n), type)):
        if name in OTHERWISE or name == "BatchNorm":
            orders = OTHERWISE.get(name, "another name of BatchNormalization")
        elif name not in known:
            orders = "within the layer"
        else:
            case = known[name]
            inputs = "1" if name in families.KINKED else "2"
            if any(shape[:1] == ("int",) for shape in case.shapes):
                inputs = "-"
            layer = case.make()
            layer(case.inputs(2))
            orders = f"{inputs}, {'2' if list(layer.trainable_variables) else '-'}"
        yield f"`{name}`", str(keras[name] or "-"), str(torch[name] or "-"), orders


def of_training(
    namespace: str, table: Sequence[Any], orders: Any = None
) -> Iterator[tuple[str, ...]]:
    """Give a row for each name in a table of Keras's values, and for each with separate tests."""
    counts = Counter(row[0] for row in table)
    others = TRAINING.get(namespace, {})
    for name in sorted({*counts, *others}):
        told = [str(counts[name])] if name in counts else [others[name]]
        yield (f"`{name}`", *told, *([] if orders is None else [orders(name)]))


def callbacks() -> Iterator[tuple[str, ...]]:
    """Give a row for each callback: the tests that use it."""
    files = sorted((TESTS / "training").rglob("test_*.py"))
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    for name in sorted(gt.training.callbacks.__all__):
        found = [path for path, text in texts.items() if re.search(rf"\b{name}\b", text)]
        yield f"`{name}`", ", ".join(found) or "-"


def page() -> str:
    """Return the text of the page."""

    def order(name: str) -> str:
        return "-" if name == "mean_absolute_percentage_error" else "2"

    lines = [HEAD, "## Layers", ""]
    lines += markdown_rows(("layer", "values: Keras", "PyTorch", "gradients"), layers())
    lines += ["", "## Losses", "", "Objects reduce these functions.", ""]
    lines += markdown_rows(
        ("loss", "values", "gradients"), of_training("losses", losses.KERAS, order)
    )
    lines += ["", "## Metrics", "", "Each in two batches, without and with weights.", ""]
    lines += markdown_rows(("metric", "values"), of_training("metrics", metrics.KERAS))
    lines += ["", "## Optimizers", "", "Each after 20 steps, eager and traced.", ""]
    lines += markdown_rows(("optimizer", "runs"), of_training("optimizers", optimizers.KERAS))
    lines += [
        "",
        "## Schedules",
        "",
        "15 steps each, as in Keras; `OneCycle` as in PyTorch.",
        "",
    ]
    lines += markdown_rows(("schedule", "sequences"), of_training("schedules", schedules.PEERS))
    lines += ["", "## Callbacks", "", "These tests compare their behaviour with Keras's.", ""]
    lines += markdown_rows(("callback", "tests"), callbacks())
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page()}, sys.argv[1:]))
