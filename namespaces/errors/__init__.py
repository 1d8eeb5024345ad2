"""The exceptions of gradtape, each a subclass of the builtin one that NumPy users would catch.

The exceptions of saving and loading are in :mod:`gradtape.saving`.
"""

from __future__ import annotations

from ..core.errors import BackendMismatch as BackendMismatch
from ..core.errors import BackendUnavailable as BackendUnavailable
from ..core.errors import BrokenPathWarning as BrokenPathWarning
from ..core.errors import DistributedError as DistributedError
from ..core.errors import EndlessLoop as EndlessLoop
from ..core.errors import ExecutorWarning as ExecutorWarning
from ..core.errors import GradientError as GradientError
from ..core.errors import GradtapeError as GradtapeError
from ..core.errors import NonFiniteError as NonFiniteError
from ..core.errors import OutOfMemory as OutOfMemory
from ..core.errors import PluginError as PluginError
from ..core.errors import ThreadsWarning as ThreadsWarning
from ..core.errors import TraceError as TraceError
from ..core.errors import UnknownName as UnknownName
from ..core.errors import UnknownOp as UnknownOp
from ..public import publish

publish(__name__)
