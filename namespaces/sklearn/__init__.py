"""Models as scikit-learn estimators; requires ``pip install "gradtape[sklearn]"``."""

from __future__ import annotations

from ..compat.sklearn.estimators import Classifier, Regressor
from ..public import publish

__all__ = ["Classifier", "Regressor"]

publish(__name__)
