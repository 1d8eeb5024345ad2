"""The arguments for each kind of parameter: functions of the call's ``Draw``, by name."""

from .base import KINDS, Kind, words
from .names import BY_NAME, OTHERS

__all__ = ["BY_NAME", "KINDS", "OTHERS", "Kind", "words"]
