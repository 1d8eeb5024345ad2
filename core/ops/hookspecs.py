"""The hooks that a plugin may implement; all are optional.

A plugin is a module or object whose functions are marked with ``gradtape.hookimpl``, registered
under the entry-point group ``gradtape`` (or by hand with ``gradtape.register_plugin``). It must be
fast to import: import heavy libraries in the methods of its backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

if TYPE_CHECKING:
    from ..tensors.op import Op
    from .backend import Backend
    from .collectives import Engine

PROJECT = "gradtape"
Fn = TypeVar("Fn", bound=Callable[..., Any])

Rules = Mapping[str, Callable[..., Any] | Mapping[str, Any]]

hookspec = pluggy.HookspecMarker(PROJECT)
_hookimpl = pluggy.HookimplMarker(PROJECT)


def hookimpl(function: Fn) -> Fn:
    """Mark a plugin's function as an implementation of the hook of the same name.

    Parameters
    ----------
    function
        A function with the name of a hook, or assigned to that name in the plugin:
        ``gradtape_ops``, ``gradtape_gradients``, ``gradtape_kernels``, ``gradtape_backends``,
        ``gradtape_modules``, ``gradtape_executors``, ``gradtape_collectives``,
        ``gradtape_formats``, ``gradtape_late_ops``, ``gradtape_functions`` or
        ``gradtape_hints``.

    Returns
    -------
    callable
        The function itself.

    Examples
    --------
    >>> from gradtape.core.extend import Op
    >>> @gt.hookimpl
    ... def gradtape_ops():
    ...     return [Op("example::twice", lambda xp, x: 2 * x, gradients={"x": lambda g: 2 * g})]
    """
    return _hookimpl(function)


@hookspec
def gradtape_backends() -> Sequence[Backend]:  # type: ignore[empty-body]
    """Return the backends that the plugin provides."""


@hookspec
def gradtape_ops() -> Sequence[Op]:  # type: ignore[empty-body]
    """Return the ops that the plugin provides.

    A third-party op's name is qualified by its distribution: ``"mypackage::myop"``.
    """


@hookspec
def gradtape_gradients() -> Rules:  # type: ignore[empty-body]
    """Return gradient rules for ops of other plugins, by op name.

    Each value is a mapping from input names to rules, as in ``Op(gradients=...)``, or one function,
    as for ``gradtape.register_gradient``.
    """


@hookspec
def gradtape_kernels() -> Mapping[tuple[str, str], Callable[..., Any]]:  # type: ignore[empty-body]
    """Return kernels by ``(op name, backend name)``, which replace the op's portable kernel.

    Each is a function of the backend's raw arrays and the op's parameters.
    """


@hookspec
def gradtape_modules() -> Mapping[str, type]:  # type: ignore[empty-body]
    """Return module classes that saved files may name, by a stable name such as ``"layers.Dense"``.

    A class has ``get_config()``, which returns a dict that JSON can hold, and a constructor that
    takes it. If the classes have ``saved_as`` names, return ``saved_classes(vars(package))``.
    """


@hookspec
def gradtape_executors() -> Mapping[str, Callable[..., Any]]:  # type: ignore[empty-body]
    """Return graph executors by name: ``executor(graph)`` returns ``run(arrays) -> arrays``.

    ``run.explain``, if it exists, is a function that returns a text about how the graph runs.
    """


@hookspec
def gradtape_collectives() -> Sequence[Engine]:  # type: ignore[empty-body]
    """Return the engines that the plugin provides, which connect the ranks of a job.

    ``gradtape.distributed.init(engine="name")`` selects one.
    """


@hookspec
def gradtape_formats() -> Mapping[str, Callable[..., Any] | str]:  # type: ignore[empty-body]
    """Return what writes files of other formats, by the end of their names, such as ``".npz"``.

    A function ``write(path, arrays, metadata)`` writes NumPy arrays by name, with texts by name:
    ``gradtape.save_weights`` calls it with a temporary path of that ending, and then replaces the
    user's file atomically. A function with a true attribute ``replaces`` does that itself, and
    receives the user's path. A text says what to call instead: it is the
    message for a path of a format that is not one of weights.
    """


@hookspec
def gradtape_late_ops() -> Mapping[str, Callable[[], Sequence[Op]]]:  # type: ignore[empty-body]
    """Return functions that return ops, by the prefix of these ops' names.

    ``{"mypackage": load}`` is for many ops that few programs need: ``load()`` is called when an op
    ``"mypackage::..."`` is first looked up, by a program or a file.
    """


@hookspec
def gradtape_functions() -> Mapping[  # type: ignore[empty-body]
    str, Callable[[], Mapping[str, Callable[..., Any] | str]]
]:
    """Return functions that say what to use instead of another library's functions, by module.

    In ``{"scipy.special": load}``, ``load()`` returns a mapping from names in that module. For a
    ufunc, the value is an op, or another function of tensors, which runs when the ufunc receives a
    tensor. For a Python function, which tensors cannot intercept, the value is the name of a
    function that keeps gradients; messages show it. ``load()`` is called when a tensor first
    reaches a function of the imported module.
    """


@hookspec
def gradtape_hints() -> Mapping[str, Mapping[str, str]]:  # type: ignore[empty-body]
    """Return what to use instead of names that gradtape lacks, by module or class.

    In ``{"": {"old": "acme.new(x)"}}``, the first name is a path in the package: ``""`` for the
    package itself, ``"nn"``, ``"Tensor"``, ``"Module"`` or ``"training.Optimizer"``. The message
    for ``gt.old`` then ends with ``use acme.new(x)``. A plugin's hint replaces gradtape's own.
    """
