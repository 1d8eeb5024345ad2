"""Write ``torch_layers.npz``, and the table in the guide. Needs torch and safetensors.

For each case, the file holds the state of a module of PyTorch, what it computes, and the largest
difference between it and the layer with its weights, and between the layer and a module with the
layer's.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file

FOLDER = Path(__file__).parent
GUIDE = FOLDER.parents[3] / "docs" / "guides" / "weights.md"
sys.path.insert(0, str(FOLDER.parent))

import pytorch  # noqa: E402
from torch_layers import TWINS, inputs, randomized, result, table  # noqa: E402


def main() -> None:
    stored: dict[str, Any] = {}
    for name, twin in TWINS.items():
        x, module = inputs(name), pytorch.module(name)
        state = {key: value.numpy().copy() for key, value in module.state_dict().items()}
        expected = pytorch.computed(name, module)
        stored |= {f"{name}/state/{key}": value for key, value in state.items()}
        stored[f"{name}/y"] = expected
        layer = twin.layer()
        result(name, layer, x)
        layer.load_weights(state)
        stored[f"{name}/load"] = np.abs(result(name, layer, x) - expected).max()
        randomized(layer)
        with tempfile.TemporaryDirectory() as folder:
            layer.save_weights(f"{folder}/layer.safetensors", layout="pytorch")
            module.load_state_dict(load_file(f"{folder}/layer.safetensors"), strict=True)
        difference = np.abs(result(name, layer, x) - pytorch.computed(name, module)).max()
        stored[f"{name}/save"] = difference
    np.savez_compressed(FOLDER / "torch_layers.npz", **stored)
    text = GUIDE.read_text("utf-8")
    before, _, rest = text.partition("| layer | module in")
    after = rest[rest.index("\n\n") :]
    GUIDE.write_text(before + "\n".join(table(stored)) + after, "utf-8")


if __name__ == "__main__":
    main()
