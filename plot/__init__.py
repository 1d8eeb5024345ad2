"""Pictures of derivatives. Needs Matplotlib: ``pip install "gradtape[plot]"``."""

from .jacobians import jacobian

__all__ = ["jacobian"]
