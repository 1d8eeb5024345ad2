"""The gradient checker, by the name that the tests use: ``from gradcheck import check_gradients``."""

from gradtape.testing import check_gradients

__all__ = ["check_gradients"]
