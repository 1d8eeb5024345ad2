"""Pictures of derivatives. Needs Matplotlib: ``pip install "gradtape[plot]"``."""

from ..public import publish
from .jacobians import jacobian

__all__ = ["jacobian"]

publish(__name__)
