"""The estimators' imports from scikit-learn, and replacements if it is not installed."""

from __future__ import annotations

from typing import Any, Self

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_random_state
    from sklearn.utils.class_weight import compute_class_weight
    from sklearn.utils.multiclass import (
        _check_partial_fit_first_call,
        check_classification_targets,
    )
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise

    class BaseEstimator:  # type: ignore[no-redef]
        """Replaces scikit-learn's class if that is missing: constructing an estimator raises."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            """Raise an error that says what to install."""
            raise ImportError(
                f"sklearn.{cls.__name__}: scikit-learn is not installed: "
                'pip install "gradtape[sklearn]"'
            )

    class ClassifierMixin:  # type: ignore[no-redef]
        """Replaces scikit-learn's class if that is missing."""

    class RegressorMixin:  # type: ignore[no-redef]
        """Replaces scikit-learn's class if that is missing."""


__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "_check_partial_fit_first_call",
    "_check_sample_weight",
    "check_classification_targets",
    "check_is_fitted",
    "check_random_state",
    "compute_class_weight",
    "train_test_split",
    "validate_data",
]


def __getattr__(name: str) -> Any:
    """Return None for functions of scikit-learn if it is missing: nothing can call them then."""
    if name not in __all__:
        raise AttributeError(name)
    return None
