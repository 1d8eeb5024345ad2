"""Everything that authors of plugins import: ops, backends, executors, engines and their helpers.

These names keep their meaning as long as the first number of ``API`` stays the same. Types of
:mod:`gradtape.testing` check what a plugin provides; ``docs/plugins.md`` lists the hooks.

Hooks
    ``API``, ``hookimpl``, ``registry``, ``PluginInfo``, ``PluginError``, ``user_line``,
    ``warn_user``
Ops and their rules
    ``Op``, ``F``, ``ops``, ``NONDIFF``, ``as_tensor``; for batching rules, ``as_batched`` and
    ``rank_of``
Shape rules
    ``as_shape``, ``as_size``, ``broadcast_shapes``, ``known_size``, ``largest``, ``smallest``,
    ``same_shape``, ``same_size``, ``shapes_differ``, ``sizes_differ``
Backends
    ``Backend``, ``BackendUnavailable``, ``Sender``, ``Stopwatch``, ``backend_of``, ``to_numpy``
Executors
    ``Graph``, ``Node``, ``Read``, ``Symbol``, ``argument_of``, ``begin_step``, ``by_backend``,
    ``compiling``, ``default``, ``end_step``, ``kernel_of``, ``local_constants``, ``plain``,
    ``set_arrays``
Engines
    ``Communicator``, ``Engine``, ``Launcher``, ``Place``, ``place``
Classes in files
    ``Module``, ``saved_classes``

>>> from gradtape.plugin import F, Op, hookimpl
>>> twice = Op("acme::twice", lambda xp, x: 2 * x, gradients={"x": lambda g: F.multiply(g, 2)})
>>> class Plugin:
...     @staticmethod
...     @hookimpl
...     def gradtape_ops():
...         return [twice]
>>> gt.register_plugin(Plugin(), "acme")
>>> gt.grad(twice)(1.0).item()
2.0
>>> gt.unregister_plugin("acme")
"""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from .core import later as _later  # noqa: F401
from .core.contract import *  # noqa: F403
from .core.contract_later import *  # noqa: F403
from .public import publish

publish(__name__)
