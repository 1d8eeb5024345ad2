"""The hooks that a plugin may implement; all are optional.

A plugin is a module or object whose functions are marked with ``gradtape.hookimpl``, registered
under the entry-point group ``gradtape`` (or by hand with ``gradtape.register_plugin``). It must be
fast to import: import heavy libraries in the methods of its backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, overload

import pluggy

from ..errors import PluginError

if TYPE_CHECKING:
    from ..ops.backend import Backend
    from ..ops.collectives import Engine
    from ..ops.primitive import Primitive

PROJECT = "gradtape"
Fn = TypeVar("Fn", bound=Callable[..., Any])

Rules = Mapping[str, Callable[..., Any] | Mapping[str, Any]]

hookspec = pluggy.HookspecMarker(PROJECT)
_hookimpl = pluggy.HookimplMarker(PROJECT)


@overload
def hookimpl(function: Fn) -> Fn: ...


@overload
def hookimpl(
    *,
    tryfirst: bool = False,
    trylast: bool = False,
    optionalhook: bool = False,
    specname: str | None = None,
) -> Callable[[Fn], Fn]: ...


def hookimpl(
    function: Any = None,
    *,
    tryfirst: bool = False,
    trylast: bool = False,
    optionalhook: bool = False,
    specname: str | None = None,
) -> Any:
    """Mark a plugin's function as an implementation of the hook of the same name.

    Parameters
    ----------
    function
        A function with the name of a hook, or assigned to that name in the plugin:
        ``gradtape_ops``, ``gradtape_kernels``, ``gradtape_backends``, ... ``docs/plugins.md`` lists
        all hooks.
    tryfirst, trylast
        Whether what it provides takes precedence over what other plugins provide of the same name,
        or the other way round. Two plugins of the same rank clash: that one thing cannot be used
        until the user sets an order. gradtape's own plugins are marked ``trylast``.
    optionalhook
        Whether the hook may be unknown to the installed version of gradtape.
    specname
        The hook's name, if the function has another one.

    Returns
    -------
    callable
        The function itself; a decorator if no function is given.

    Examples
    --------
    >>> from gradtape.plugin import Op
    >>> @gt.hookimpl
    ... def gradtape_ops():
    ...     return [Op("example::twice", lambda xp, x: 2 * x, gradients={"x": lambda g: 2 * g})]
    >>> @gt.hookimpl(tryfirst=True)
    ... def gradtape_kernels():
    ...     return {("matmul", "numpy"): my_matmul}
    """
    if tryfirst and trylast:
        raise PluginError("hookimpl: a hook cannot be both tryfirst and trylast")
    return _hookimpl(
        function,
        tryfirst=tryfirst,
        trylast=trylast,
        optionalhook=optionalhook,
        specname=specname,
    )


@hookspec
def gradtape_ops() -> Sequence[Primitive]:  # type: ignore[empty-body]
    """Return the ops that the plugin provides.

    A third-party op's name is qualified by its distribution: ``"mypackage::myop"``.
    """


@hookspec
def gradtape_gradients() -> Rules:  # type: ignore[empty-body]
    """Return gradient rules for ops of other plugins, by op name.

    Each value is a mapping from input names to rules, as in ``Op(gradients=...)``, or one function,
    as for ``gradtape.register_gradient``, which may also take what ``Op(vjp=...)`` takes.
    """


@hookspec
def gradtape_kernels() -> Mapping[tuple[str, str], Callable[..., Any] | str]:  # type: ignore[empty-body]
    """Return kernels by ``(op name, backend name)``, which replace the op's portable kernel.

    Each is a function of the backend's raw arrays and the op's parameters. It also replaces a
    kernel that gradtape has for this backend. A text ``"module:attribute"`` is imported when the
    kernel is first needed.
    """


@hookspec
def gradtape_backends() -> Sequence[Backend]:  # type: ignore[empty-body]
    """Return the backends that the plugin provides."""


@hookspec
def gradtape_modules() -> Mapping[str, type | str]:  # type: ignore[empty-body]
    """Return module classes that saved files may name, by a stable name such as ``"layers.Dense"``.

    A class has ``get_config()``, which returns a dict that JSON can hold, and a constructor that
    takes it. If the classes have ``saved_as`` names, return ``saved_classes(vars(package))``. A
    text ``"module:attribute"`` is imported when the classes are first read.
    """


@hookspec
def gradtape_executors() -> Mapping[str, Callable[..., Any]]:  # type: ignore[empty-body]
    """Return graph executors by name: ``executor(graph)`` returns ``run(arrays) -> arrays``.

    ``run.explain``, if it exists, is a function that returns a text about how the graph runs.
    ``executor.emitter``, if it exists, is a function that returns what compiles loops for graphs of
    the default executor that run often.
    """


@hookspec
def gradtape_collectives() -> Sequence[Engine]:  # type: ignore[empty-body]
    """Return the engines that the plugin provides, which connect the ranks of a job.

    ``gradtape.distributed.init(engine="name")`` selects one.
    """


@hookspec
def gradtape_late_ops() -> Mapping[  # type: ignore[empty-body]
    str | tuple[str, ...], Callable[[], Sequence[Primitive]]
]:
    """Return functions that return ops, by the prefix of these ops' names, or by all their names.

    ``{"mypackage": load}`` is for many ops that few programs need: ``load()`` is called when an op
    ``"mypackage::..."`` is first looked up, by a program or a file. These ops are listed only then.

    ``{("mypackage::one", "mypackage::two"): load}`` is for ops that are known by name: ``load()``
    is called when one of them is first looked up, or when all ops are listed.
    """


@hookspec
def gradtape_formats() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Return formats of weights, by the end of their files' names, such as ``".npz"``.

    Each is an object with one or both of two functions, which ``gradtape.save_weights`` and
    ``gradtape.load_weights`` call. ``write(path, arrays, metadata)`` writes NumPy arrays by name,
    with texts by name, to a temporary path of that ending; the user's file is then replaced
    atomically. If the format does that itself, it has a true attribute ``replaces``, and receives
    the user's path. ``read(path)``, or ``read(path, max_bytes)``, returns such arrays, or arrays
    and texts; ``open(path, max_bytes)`` instead returns ``gradtape.saving.weights.arrays.Arrays``,
    whose arrays are read when they are needed.

    ``recognises(file)`` is optional: whether a file, by ``file.size`` and ``file.read(offset,
    size)``, is of this format, whatever its name. ``layouts`` are names of frameworks, as in
    ``names_elsewhere`` of classes, or objects of ``gradtape.saving.weights.layouts.Layout`` where
    names and axes follow rules of their own. Instead of an object, a function writes, and a text
    says what to call instead: it is the message for a path of a format that is not one of weights.
    A format that only reads may have a text ``warns``: the warning that ``gradtape.save`` gives for
    a path with this ending.
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
    reaches a function of the imported module. An empty mapping is allowed.

    Code of a package with such a module computes with arrays: while nothing follows a tensor,
    NumPy's functions return arrays where that code calls them, and conversions may be written to.
    """


@hookspec
def gradtape_hints() -> Mapping[str, Mapping[str, str]]:  # type: ignore[empty-body]
    """Return what to use instead of names that gradtape lacks, by module or class.

    In ``{"": {"old": "acme.new(x)"}}``, the first name is a path in the package: ``""`` for the
    package itself, ``"nn"``, ``"Tensor"``, ``"Module"`` or ``"training.Optimizer"``. The message
    for ``gt.old`` then ends with ``use acme.new(x)``. A plugin's hint replaces gradtape's own.
    """


@hookspec
def gradtape_names() -> Mapping[str, Mapping[str, Any]]:  # type: ignore[empty-body]
    """Return what a text may name, by kind and name.

    Kinds are ``"activation"``, ``"optimizer"``, ``"loss"``, ``"metric"``, ``"initializer"``,
    ``"regularizer"``, ``"constraint"``, ``"schedule"`` and ``"callback"``: ``{"activation":
    {"acme::act": act}}`` is for ``Dense(4, activation="acme::act")``. The value is what could be
    given instead of the text, or a class to create it from.
    """


@hookspec
def gradtape_namespaces() -> Mapping[str, str | ModuleType]:  # type: ignore[empty-body]
    """Return packages that stand under ``gradtape``, by name: ``{"acme": "acme.public"}``.

    ``gt.acme`` is then the module ``acme.public``, which is imported at its first use.
    """


@hookspec
def gradtape_lowerings() -> Mapping[  # type: ignore[empty-body]
    tuple[str, str], Callable[..., Any]
]:
    """Return how an executor or exporter expresses an op, by ``(op name, target)``.

    Targets of gradtape are ``"planned"``, ``"llvm"``, ``"cupy"``, ``"cuda"``, ``"onnx"`` and
    ``"stablehlo"``; ``docs/plugins.md`` has the arguments of their functions. An op whose portable
    kernel is a formula needs none.
    """


@hookspec
def gradtape_commands() -> Mapping[str, Callable[..., None]]:  # type: ignore[empty-body]
    """Return commands of the command line, by name.

    A function ``add(parser)`` adds arguments to an ``argparse.ArgumentParser``, and calls
    ``parser.set_defaults(run=...)`` with a function that receives the parsed options and returns
    the exit code. The first line of its docstring is the command's help.
    """


@hookspec
def gradtape_exporters() -> Mapping[str, Callable[..., Any]]:  # type: ignore[empty-body]
    """Return what writes models for other runtimes, by the name of the format.

    ``gradtape.export.to(name, fn, *args, path=path, **kwargs)`` calls a function with everything
    after the name, and returns its result.
    """


@hookspec
def gradtape_storages() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Return containers of whole files, by the end of file names, such as ``".zarr"``.

    Each is a ``gradtape.saving.Storage``, which ``gradtape.save``, ``load``, ``verify`` and all
    others that write or read such files use.
    """


@hookspec
def gradtape_datasets() -> Mapping[str, Callable[..., Any]]:  # type: ignore[empty-body]
    """Return functions that load data, by the dataset's name, such as ``"acme::faces"``.

    ``gradtape.datasets.load(name, **options)`` calls one with these options.
    """


@hookspec
def gradtape_diagnoses() -> Mapping[str, Callable[[], Mapping[str, Any]]]:  # type: ignore[empty-body]
    """Return functions that say what ``gradtape doctor`` shows, by the name of the section.

    Each returns JSON values: ``"lines"`` and ``"advice"`` to print, ``"packages"`` (a distribution,
    or a list of some, by the module that it provides), ``"variables"`` of the environment, and the
    data behind them. All are optional.
    """


@hookspec
def gradtape_launchers() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Return what starts the ranks of a job for ``gradtape train``, by the engine's name."""


@hookspec
def gradtape_converters() -> Mapping[Any, Callable[..., Any]]:  # type: ignore[empty-body]
    """Return what converted Python code calls in a trace instead of a function, by the function."""


@hookspec
def gradtape_samples() -> Mapping[str, Sequence[Any]]:  # type: ignore[empty-body]
    """Return samples for ``gradtape.testing``, by op name: lists of ``gradtape.testing.Sample``."""


@hookspec
def gradtape_services() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Return what lower packages use of higher ones, by ``"<plugin>.<name>"``.

    A text ``"module:attribute"`` is imported when it is first used.
    gradtape's packages import only packages below them. ``core`` pickles tensors with
    ``saving.pickle_tensor``, and ``fit`` keeps its state with ``saving.Keeper``. Services can be
    replaced. What uses a missing one says so.
    """


#: The names of all hooks.
HOOKS = tuple(name for name in globals() if name.startswith(f"{PROJECT}_"))
