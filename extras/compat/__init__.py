"""Names for people who arrive from other frameworks; hints show them, nothing else uses them.

``import gradtape.compat.tensorflow as tf`` runs code that was written for ``tf.GradientTape``.
"""

from __future__ import annotations

from ..core.extend import hookimpl


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, str]:
    """Provide the names that TensorFlow has for gradtape's objects: hints show them."""
    return {"compat.tensorflow_names": f"{__package__}.tensorflow.names:paths_of"}
