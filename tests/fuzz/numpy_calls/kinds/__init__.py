"""The arguments for each kind of parameter: functions of the call's ``Draw``, by name."""

from fuzz.numpy_calls.kinds.base import KINDS, Kind, words
from fuzz.numpy_calls.kinds.names import BY_NAME, OTHERS

__all__ = ["BY_NAME", "KINDS", "OTHERS", "Kind", "words"]
