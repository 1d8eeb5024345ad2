"""Models as scikit-learn estimators; requires ``pip install "gradtape[sklearn]"``."""

from __future__ import annotations

from ..public import publish
from .estimators import Classifier, Regressor

__all__ = ["Classifier", "Regressor"]

publish(__name__)
