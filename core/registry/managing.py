"""The functions by which programs register, remove, disable and order plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .host import HOST, Registration


def register_plugin(plugin: Any, name: str | None = None, *, replace: bool = False) -> Registration:
    """Register a plugin by hand: a module or object with hook implementations.

    It is registered for the whole process, in all threads, also in a ``with`` block.

    Parameters
    ----------
    plugin
        The object that has the functions marked with :func:`gradtape.hookimpl`.
    name
        A name for messages and for :func:`gradtape.unregister_plugin`. By default the module's
        name, or that of the object's class.
    replace
        Whether to replace a plugin of this name, or an installed plugin that is the same module.
        Call it so after ``importlib.reload(module)``. False by default.

    Returns
    -------
    Registration
        ``with gt.register_plugin(...):`` removes the plugin at the end of the block, and
        ``unregister()`` removes it at once.

    Raises
    ------
    PluginError
        If it clashes with another plugin or cannot be used. It is then not registered, and one that
        it should have replaced remains.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from gradtape.plugin import Op
    >>> twice = Op("example::twice", lambda xp, x: 2 * x, gradients={"x": lambda g: 2 * g})
    >>> plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [twice]))
    >>> with gt.register_plugin(plugin, "example"):
    ...     gt.grad(twice)(1.0).item()
    2.0
    """
    return HOST.register(plugin, name, replace)


def unregister_plugin(name: str) -> None:
    """Remove a plugin registered by hand.

    Parameters
    ----------
    name
        The name under which it was registered.

    Raises
    ------
    PluginError
        If no plugin of that name was registered by hand.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: []))
    >>> registered = gt.register_plugin(plugin, "example")
    >>> gt.unregister_plugin("example")
    >>> any(info.name == "example" for info in gt.registry().plugins)
    False
    """
    HOST.unregister(name)


def disable_plugin(name: str, disabled: bool = True) -> None:
    """Disable the plugin called ``name``, or enable it again.

    The environment variable ``GRADTAPE_DISABLE_PLUGINS``, a comma-separated list of names, does the
    same when the process starts. ``GRADTAPE_PLUGINS`` is the opposite: of all installed plugins,
    only those that it lists, and gradtape's own, are used.

    Parameters
    ----------
    name
        The plugin's name, as ``gradtape plugins`` lists it, or ``"distribution:name"``; ``*``
        stands for any characters, as in ``"acme:*"``. An unknown name causes a warning.
    disabled
        False enables it again.

    Examples
    --------
    >>> gt.disable_plugin("cupy")
    >>> "cupy" in gt.registry().backends
    False
    >>> gt.disable_plugin("cupy", disabled=False)
    """
    HOST.disable(name, disabled)


def order_plugins(names: Sequence[str]) -> None:
    """Say which plugins take precedence if several provide the same kernel, gradient or name.

    The environment variable ``GRADTAPE_PLUGINS_ORDER``, a comma-separated list of names, does the
    same when the process starts. Plugins that are not listed follow, as they ask for: those with
    ``hookimpl(tryfirst=True)``, then those without a wish, then those with ``trylast=True``, which
    gradtape's own have.

    Parameters
    ----------
    names
        Names of plugins, or ``"distribution:name"``, those that win first. An unknown name causes a
        warning. An empty list restores the order that plugins ask for.

    Raises
    ------
    TypeError
        If ``names`` is one text.

    Examples
    --------
    >>> gt.order_plugins(["numpy"])  # no other plugin replaces its kernels
    >>> gt.order_plugins([])
    """
    HOST.set_order(names)
