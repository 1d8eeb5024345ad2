"""Users' control of the conversion, and the function that a trace runs."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from ..core.errors import BackendUnavailable, TraceError
from ..core.extend import Function, converting, flatten, hookimpl, lazy_module, pack_like
from .calls import KEPT, NoSource, ask_for, converted, source_of
from .effects import deferring
from .mutations import give_back, unwatched

Fn = TypeVar("Fn", bound=Callable[..., Any])

_INSTALL = 'pip install "gradtape[autograph]"'


@functools.cache
def missing_library() -> str | None:
    """Return which required package is missing; None if functions can be converted."""
    try:
        lazy_module("autograph.transforms")
    except ImportError as error:
        return str(error)
    return None


def running(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the callable that a trace runs instead of a function.

    Parameters
    ----------
    function
        A Python function, method or callable object.

    Returns
    -------
    callable
        Runs the converted function. If the conversion library is not installed, it runs the
        original, and errors about control flow say what to install.
    """
    if missing_library() is not None:
        return _as_it_is(function)
    ask_for(function)

    def run(*args: Any, **kwargs: Any) -> Any:
        token = converting.set(converted)
        changes: list[Any] = []
        failed = True
        try:
            with deferring() as changes:
                returned = converted(function)(*args, **kwargs)
            failed = False
            # apart from the objects that get back what they held
            return pack_like(returned, flatten(returned)) if changes else returned
        finally:
            converting.reset(token)
            give_back(changes, (function, args, kwargs), failed)

    return run


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TraceError as error:
            if "while a function is traced" not in str(error):
                raise
            raise TraceError(
                f"{error} AutoGraph converts Python's own if, while and for to these: {_INSTALL}"
            ).with_traceback(error.__traceback__) from None

    return run


def do_not_convert(func: Any = None) -> Any:
    """Decorate a function so that AutoGraph converts neither it nor what it calls.

    Parameters
    ----------
    func
        The function. Without it, a decorator is returned. Or a package: none of its functions is
        then converted, and converted code does not look into objects of its classes.

    Returns
    -------
    callable
        A function that does the same. Its Python ``if`` and ``while`` are evaluated while tracing.
        A package is returned as it is.

    Examples
    --------
    >>> @gt.autograph.do_not_convert
    ... def shifted(x):
    ...     return x + 1.0
    >>> shifted(gt.constant(1.0)).item()
    2.0
    """
    if func is None:
        return do_not_convert
    if isinstance(func, ModuleType):
        setattr(sys.modules[func.__name__.partition(".")[0]], KEPT, True)
        return func

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        token = converting.set(None)
        try:
            with unwatched():
                return func(*args, **kwargs)
        finally:
            converting.reset(token)

    setattr(wrapper, KEPT, True)
    return wrapper


def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Set options of a converted loop; call it as the first statement of the loop's body.

    Parameters
    ----------
    parallel_iterations, swap_memory
        Accepted for compatibility with TensorFlow, without effect: steps run one after another.
    maximum_iterations
        The maximum number of steps. No limit by default.
    shape_invariants
        Accepted for compatibility with TensorFlow, without effect: the trace finds which sizes
        change from step to step.

    Examples
    --------
    >>> @gt.function(autograph=True)
    ... def doubled(x):
    ...     while x < 1000.0:
    ...         gt.autograph.set_loop_options(maximum_iterations=3)
    ...         x = x * 2.0
    ...     return x
    >>> doubled(gt.constant(1.0)).item()  # doctest: +SKIP
    8.0
    """


vars(set_loop_options)["sets_loop_options"] = True


def to_graph(entity: Callable[..., Any], recursive: bool = True) -> Callable[..., Any]:
    """Return the converted function that ``gradtape.function(entity, autograph=True)`` traces.

    Parameters
    ----------
    entity
        A Python function or method.
    recursive
        Whether to convert the functions that it calls as well. Must be True.

    Returns
    -------
    callable
        A Python function. Called eagerly, it does what ``entity`` does. In a trace, its control
        flow becomes part of the graph.

    Raises
    ------
    BackendUnavailable
        If the conversion library is not installed.
    ValueError
        If the source of ``entity`` is not available, or if ``recursive`` is False.

    Examples
    --------
    >>> def positive(x):
    ...     return x if x > 0 else -x
    >>> gt.autograph.to_graph(positive)(gt.constant(-2.0)).item()  # doctest: +SKIP
    2.0
    """
    if not recursive:
        raise ValueError(
            "autograph.to_graph: recursive=False is not supported; decorate functions that should "
            "not be converted with gradtape.autograph.do_not_convert"
        )
    function = _convertible("to_graph", entity)
    _source("to_graph", function)
    return running(entity)


def to_code(entity: Callable[..., Any], recursive: bool = True) -> str:
    """Return the Python code of a converted function.

    Parameters
    ----------
    entity
        A Python function or method.
    recursive
        Has no effect: functions that the code calls are converted when they are called.

    Returns
    -------
    str
        The code. Statements of control flow are calls of functions in the module ``ag__``.

    Raises
    ------
    BackendUnavailable
        If the conversion library is not installed.
    ValueError
        If the source of ``entity`` is not available.

    Examples
    --------
    >>> def positive(x):
    ...     return x if x > 0 else -x
    >>> "ag__.if_exp" in gt.autograph.to_code(positive)  # doctest: +SKIP
    True
    """
    function = _convertible("to_code", entity)
    node, _ = lazy_module("autograph.transforms").rewritten(_source("to_code", function), function)
    return ast.unparse(ast.fix_missing_locations(node))


def _convertible(name: str, entity: Any) -> Any:
    missing = missing_library()
    if missing is not None:
        raise BackendUnavailable(f"autograph.{name}: {missing}; {_INSTALL}")
    if isinstance(entity, Function):
        entity = entity.python_function
    return getattr(entity, "__func__", entity)


def _source(name: str, function: Any) -> Any:
    try:
        return source_of(function.__code__)
    except (AttributeError, NoSource) as error:
        raise ValueError(f"autograph.{name}: {function!r} is not converted: {error}") from None


# -- the plugin ------------------------------------------------------------------------------------


@hookimpl(trylast=True)
def gradtape_converters() -> Mapping[Any, Callable[..., Any]]:
    """Provide them; none without the library for conversions, since then nothing is converted."""
    found: Mapping[Any, Callable[..., Any]] = {}
    if missing_library() is None:
        found = lazy_module("autograph.overloads").OVERLOADS
    return found


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, Any]:
    """Provide what ``gradtape.function`` converts functions with."""
    return {"autograph.running": running, "autograph.do_not_convert": do_not_convert}
