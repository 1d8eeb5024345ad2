"""Tools to test ops, gradients and plugins; gradtape's own suite runs on them."""

from .gradients import check_gradients

__all__ = ["check_gradients"]
