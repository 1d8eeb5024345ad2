"""``gradtape demo``: train on handwritten digits, save, verify in a new process, draw."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .. import nn, random, saving, training
from ..core.errors import PluginError
from ..core.extend import Module, Tensor, constant, custom_gradient, registry, services
from ..layers import BatchNorm, Dense

CLIP = 0.05
BATCH = 32
PATIENCE = 5


@custom_gradient
def clip_gradient(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return ``x``; the backward pass clips its gradient to a norm of at most ``CLIP``."""
    return x, lambda g: nn.clip_by_norm(g, CLIP)


class Digits(Module):
    """Dense, BatchNorm, relu, a custom gradient, Dense: from 64 pixels to 10 logits."""

    def __init__(self, units: int = 128) -> None:
        super().__init__()
        self.hidden = Dense(units)
        self.norm = BatchNorm()
        self.output = Dense(10)

    def __call__(self, x: Tensor, training: bool = False) -> Tensor:
        """Return the logits of images of shape ``(n, 64)``."""
        h = nn.relu(self.norm(self.hidden(x), training=training))
        return self.output(clip_gradient(h))


def run(out: str, epochs: int = 100, seed: int = 0) -> int:
    """Run the demo and return its exit code.

    Parameters
    ----------
    out
        The folder for ``digits.h5``, ``best.weights.h5`` and ``training.png``. It is created if it
        does not exist.
    epochs
        The maximum number of epochs. Training stops when the validation loss has not fallen for
        some epochs, and the model returns to its best weights.
    seed
        The seed of the initial weights and of the order of the images.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    model_file, picture = folder / "digits.h5", folder / "training.png"
    best_file = folder / "best.weights.h5"
    best_file.unlink(missing_ok=True)

    random.set_seed(seed)
    (x, y), (x_test, y_test) = registry().provided("dataset", "digits")()
    # these images validate the training; the test images are used only at the end
    last = len(x) // 10
    train, validation = (x[:-last], y[:-last]), (x[-last:], y[-last:])
    print(
        f"Handwritten digits (UCI, CC BY 4.0)\n{len(train[0]):,} images to train on, {last} to "
        f"validate, {len(x_test)} to test"
    )
    model = Digits()
    stop = training.EarlyStopping(patience=PATIENCE)
    keep = training.ModelCheckpoint(best_file, save_best_only=True, save_weights_only=True)
    start = time.perf_counter()
    history = training.fit(
        model,
        train,
        epochs=epochs,
        batch_size=BATCH,
        optimizer=training.Adam(1e-3),
        validation_data=validation,
        callbacks=[stop, keep],
        seed=seed,
    )
    seconds = time.perf_counter() - start
    if history.interrupted:
        print("interrupted: continuing with the weights trained so far", file=sys.stderr)
    model(constant(x_test[:1]))  # an interrupted first epoch may not have run inference
    if stop.best_epoch is not None:
        model.load_weights(best_file)
        why = "stopped early" if stop.stopped_epoch is not None else "ended"
        print(
            f"{why} after epoch {len(history.epoch)}: no lower validation loss since epoch "
            f"{stop.best_epoch + 1} ({stop.best:.4f})\nrestored its weights from {best_file.name}"
        )
    accuracy = training.evaluate(model, (x_test, y_test))["accuracy"]
    print(f"\n{model.summary()}\n")
    print(f"trained in {seconds:.1f} s; accuracy on the test images: {accuracy:.2%}")

    saving.save(model, model_file)
    print(f"saved to {model_file}\n\na new process checks the file, without the model's source:")
    sys.stdout.flush()
    # isolated: it imports only installed packages, nothing from this process or folder
    command = [sys.executable, "-I", "-m", "gradtape", "verify", str(model_file)]
    verified = subprocess.run(command, check=False)
    print()
    if history.history:
        draw_curves(history.history, accuracy, picture)
    if verified.returncode:
        print(f"gradtape demo: the file {model_file} failed its verification", file=sys.stderr)
    return verified.returncode


def draw_curves(history: dict[str, list[float]], accuracy: float, picture: Path) -> None:
    """Draw the training curves, or print how to install what this needs."""
    try:
        # optional; without pyplot, no window system is chosen and no global state is left behind
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        print('to draw the training curves: pip install "gradtape[plot]"')
        return
    try:
        draw = services["plot.history"]
    except PluginError as error:  # plots are not in this installation
        print(f"no training curves: {error}")
        return
    figure = Figure(figsize=(9, 3.6), dpi=150, layout="constrained")
    axes = draw(history, ["loss", "accuracy"], list(figure.subplots(1, 2)))
    axes[1].axhline(accuracy, color="#333333", lw=1, ls="--", label=f"test images: {accuracy:.1%}")
    axes[1].legend(frameon=False, fontsize=9, loc="lower right")
    figure.savefig(picture)
    print(f"training curves: {picture}")
