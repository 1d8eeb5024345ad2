"""What gradtape uses of the names of other libraries, as a plugin."""

from __future__ import annotations

from ..core.extend import hookimpl


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, str]:
    """Provide the names that TensorFlow has for gradtape's objects: hints show them."""
    return {"compat.tensorflow_names": f"{__package__}.tensorflow.names:paths_of"}
