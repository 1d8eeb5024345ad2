"""The gradient checker by the name that the tests use: ``from gradcheck import ...``."""

from gradtape.testing import check_gradients

__all__ = ["check_gradients"]
