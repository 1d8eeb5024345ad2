"""Modules of PyTorch for the cases of ``torch_layers``, and what they compute. Needs torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch_layers import TWINS, inputs


class Named(nn.Sequential):
    """Modules one after another, with names."""

    def __init__(self, **modules: nn.Module) -> None:
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)


def module(name: str, seed: int = 0) -> Any:
    """Return the module of a case, with random numbers in everything that it keeps."""
    torch.manual_seed(seed)
    found = eval(TWINS[name].module, {**vars(nn), "Named": Named}).eval()
    for key, value in found.state_dict().items():
        if value.is_floating_point():
            value.normal_().mul_(0.5)
            if key.endswith("running_var"):
                value.abs_().add_(0.5)
    return found


def computed(name: str, made: Any) -> np.ndarray[Any, Any]:
    """Return what a module computes for the case's inputs."""
    with torch.no_grad():
        return TWINS[name].run(made, torch.from_numpy(inputs(name))).numpy()
