"""What users say of the conversion of a function, and what a traced function runs."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..core.errors import BackendUnavailable, TraceError
from ..core.extend import Function, converting, late
from .calls import KEPT, ask_for, converted
from .sources import NoSource, source_of

__all__ = ["do_not_convert", "running", "set_loop_options", "to_code", "to_graph"]

Fn = TypeVar("Fn", bound=Callable[..., Any])

_INSTALL = 'pip install "gradtape[autograph]"'


@functools.cache
def _missing() -> str | None:
    """Return what is not installed that a conversion needs; None if it can be done."""
    try:
        late("autograph.transforms")
    except ImportError as error:
        return str(error)
    return None


def running(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what runs in a function's place while it is traced.

    Parameters
    ----------
    function
        A Python function, method or callable object.

    Returns
    -------
    callable
        It runs the function converted. Without the library that converts, it runs the function as
        it is, and errors about control flow say what to install.
    """
    if _missing() is not None:
        return _as_it_is(function)
    ask_for(function)

    def run(*args: Any, **kwargs: Any) -> Any:
        token = converting.set(converted)
        try:
            return converted(function)(*args, **kwargs)
        finally:
            converting.reset(token)

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
                f"{error} AutoGraph makes these of Python's own if, while and for: {_INSTALL}"
            ).with_traceback(error.__traceback__) from None

    return run


def do_not_convert(func: Any = None) -> Any:
    """Decorate a function so that AutoGraph leaves it, and what it calls, as it is.

    Parameters
    ----------
    func
        The function; without it, a decorator is returned.

    Returns
    -------
    callable
        A function that does the same. Its Python ``if`` and ``while`` decide while tracing.

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

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        token = converting.set(None)
        try:
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
    """Say how the loop runs whose first statement this is, if it is traced.

    Parameters
    ----------
    parallel_iterations, swap_memory
        Taken for TensorFlow's sake; steps run one after another.
    maximum_iterations
        The most steps to run; no limit by default.
    shape_invariants
        Taken for TensorFlow's sake: sizes that change from step to step are found.

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
    """Return a function converted, as :func:`gradtape.function` runs it with ``autograph=True``.

    Parameters
    ----------
    entity
        A Python function or method.
    recursive
        Whether what it calls is converted as well. Must be True.

    Returns
    -------
    callable
        A Python function: of values it does what ``entity`` does, and in a trace its control flow
        becomes a part of the graph.

    Raises
    ------
    BackendUnavailable
        If the library that converts is not installed.
    ValueError
        If its source is not to be had, or ``recursive`` is False.

    Examples
    --------
    >>> def positive(x):
    ...     return x if x > 0 else -x
    >>> gt.autograph.to_graph(positive)(gt.constant(-2.0)).item()  # doctest: +SKIP
    2.0
    """
    if not recursive:
        raise ValueError(
            "autograph.to_graph: recursive=False is not supported; decorate what is to stay as it "
            "is with gradtape.autograph.do_not_convert"
        )
    function = _convertible("to_graph", entity)
    _source("to_graph", function)
    return running(entity)


def to_code(entity: Callable[..., Any], recursive: bool = True) -> str:
    """Return the Python code that a function is converted to.

    Parameters
    ----------
    entity
        A Python function or method.
    recursive
        Makes no difference: the code calls what converts.

    Returns
    -------
    str
        The code, in which ``ag__`` stands for what control flow becomes.

    Raises
    ------
    BackendUnavailable
        If the library that converts is not installed.
    ValueError
        If its source is not to be had.

    Examples
    --------
    >>> def positive(x):
    ...     return x if x > 0 else -x
    >>> "ag__.if_exp" in gt.autograph.to_code(positive)  # doctest: +SKIP
    True
    """
    function = _convertible("to_code", entity)
    node, _ = late("autograph.transforms").rewritten(_source("to_code", function), function)
    return ast.unparse(ast.fix_missing_locations(node))


def _convertible(name: str, entity: Any) -> Any:
    missing = _missing()
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
