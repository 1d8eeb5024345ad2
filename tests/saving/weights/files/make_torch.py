"""Write this folder's files of PyTorch, with what PyTorch predicts. Needs torch, safetensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file, save_model
from torch import nn

FOLDER = Path(__file__).parent
X = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """Attributes, a list, a dictionary, square matrices, a convolution, tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(5, 5)
        self.norm = nn.BatchNorm1d(5)
        self.blocks = nn.ModuleList([nn.Linear(5, 5), nn.Linear(5, 4, bias=False)])
        self.head = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        self.factor = nn.Parameter(torch.tensor([2.0, -1.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm(self.hidden(x)))
        for block in self.blocks:
            y = block(y)
        return self.head(y) * self.factor


class Tied(nn.Module):
    """One matrix in two places."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 5)
        self.second = nn.Linear(5, 5)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x)))


def main() -> None:
    torch.manual_seed(0)
    predictions = {"x": X.numpy()}
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), 0.05)
    for _ in range(3):
        optimizer.zero_grad()
        net(X).square().mean().backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        predictions["net.safetensors"] = net(X).numpy()
        save_file(net.state_dict(), FOLDER / "net.safetensors", {"format": "pt"})
        tied = Tied()
        predictions["tied.safetensors"] = tied(X).numpy()
        save_model(tied, str(FOLDER / "tied.safetensors"))
        convolution = nn.Conv2d(2, 3, (3, 2))
        image = torch.randn(1, 2, 5, 4)
        predictions["image"] = image.numpy()
        predictions["conv.safetensors"] = convolution(image).numpy()
        save_file(convolution.state_dict(), FOLDER / "conv.safetensors")
        short = torch.tensor([0.0, -0.0, 1.0, -1.5, 448.0, 2.0**-9, 0.1, 3.0e-5, float("nan")])
        kinds = {
            "bfloat16": torch.bfloat16,
            "float16": torch.float16,
            "float8_e4m3": torch.float8_e4m3fn,
            "float8_e5m2": torch.float8_e5m2,
        }
        halves = {name: short.to(dtype) for name, dtype in kinds.items()}
        save_file(halves, FOLDER / "narrow.safetensors")
        predictions.update({f"narrow/{name}": x.float().numpy() for name, x in halves.items()})
    np.savez(FOLDER / "torch_predictions.npz", **predictions)


if __name__ == "__main__":
    main()
