"""Pictures of models, training and derivatives. Most need ``pip install "gradtape[plot]"``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..public import publish
from .jacobians import jacobian
from .training import confusion, history, weights

if TYPE_CHECKING:
    from ..reports.models import model

__all__ = ["confusion", "history", "jacobian", "model", "weights"]

# it draws with the boxes and edges of reports on files, so the function is in that package
publish(__name__, above={".reports.models": "model"})
