"""The executors and the formats of files that ship with gradtape, as a plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import Graph, default, hookimpl, late, plain


@hookimpl(trylast=True)
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide executors: the backend's own, a kernel call per node, and plans for NumPy."""
    return {
        "default": default,
        "plain": plain,
        "planned": lambda graph: _of_plans("planned", graph),
        "fused": lambda graph: _of_plans("fused", graph),
    }


_ONNX = "gradtape.export.onnx(model, spec, path=...) writes ONNX, from a TensorSpec of the input"
_TORCH = (
    'PyTorch reads safetensors: model.save_weights("model.safetensors", layout="pytorch") there, '
    'and model.load_state_dict(safetensors.torch.load_file("model.safetensors")) in PyTorch'
)
_NUMPY = (
    "numpy.savez(path, **{name: v.numpy() for name, v in model.named_variables.items()}) writes "
    "the weights, and gradtape.load_weights(dict(numpy.load(path)), model) loads them"
)
_PICKLE = "pickle.dump(model, file) pickles a model"
_STABLEHLO = "gradtape.export.stablehlo(model, spec, path=...) writes StableHLO"


@hookimpl(trylast=True)
def gradtape_formats() -> dict[str, Callable[..., Any] | str]:
    """Provide safetensors, and what to call for formats that ``save`` does not write."""
    return {
        ".safetensors": _write_tensors,
        **dict.fromkeys((".onnx",), _ONNX),
        **dict.fromkeys((".pt", ".pth"), _TORCH),
        **dict.fromkeys((".npz", ".npy"), _NUMPY),
        **dict.fromkeys((".pkl", ".pickle", ".joblib"), _PICKLE),
        **dict.fromkeys((".mlir", ".stablehlo"), _STABLEHLO),
        ".zarr": "zarr.save_group(path, **gradtape.saving.read_weights(file)) copies weights",
    }


def _write_tensors(*given: Any) -> None:
    late("saving.weights.tensors").write_tensors(*given)


_write_tensors.replaces = True  # type: ignore[attr-defined]


def _of_plans(name: str, graph: Graph) -> Any:
    return getattr(late("plugins.planned"), name)(graph)
