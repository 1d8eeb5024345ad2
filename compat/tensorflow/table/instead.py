"""What to use in place of a name that there is not."""

from __future__ import annotations

__all__ = ["INSTEAD"]

#: What to use where a name has no counterpart, by the name's last part.
INSTEAD = {
    "Graph": "gradtape.function(f).get_concrete_function(...).graph",
    "Lambda": "tf.keras.layers.Activation, which takes any function of a tensor",
    "Session": "eager code: ops run when they are called",
    "bfloat16": "float32, or tf.keras.mixed_precision: NumPy has no bfloat16",
    "clone_model": "copy.deepcopy(model), which keeps the weights",
    "config": "gradtape.backend('cupy') to choose a device",
    "data": "gradtape.data, arrays, or any iterable of (x, y) batches",
    "datasets": "gradtape.datasets",
    "debugging": "gradtape.debug, and assert",
    "device": "gradtape.backend('cupy:0')",
    "div": "tf.divide",
    "gradients": "gradtape.GradientTape, or gradtape.grad",
    "hessians": "gradtape.hessian",
    "io": "gradtape.save and gradtape.load",
    "mul": "tf.multiply",
    "neg": "tf.negative",
    "placeholder": "arguments of a gradtape.function",
    "print": "Python's print; a traced function prints while it is traced",
    "py_function": "a plain call: eager code is Python",
    "sub": "tf.subtract",
    "summary": "gradtape.Module.summary, or a callback of fit",
    "to_double": "tf.cast(x, tf.float64)",
    "to_float": "tf.cast(x, tf.float32)",
    "to_int32": "tf.cast(x, tf.int32)",
    "to_int64": "tf.cast(x, tf.int64)",
    "saving": "Model.save and tf.keras.models.load_model; classes need no registration",
    "train": "gradtape.training.Checkpoint and CheckpointManager",
}
