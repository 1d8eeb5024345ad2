"""NumPy's functions and ufuncs on tensors: dispatch to gradtape's functions.

``Tensor.__array_ufunc__`` and ``__array_function__`` call this module. Arguments are matched by
NumPy's names for them, so that their order may differ in gradtape's function. Results are tensors,
whether a tape is active or not; ``numpy_functions.py`` has the exceptions. One is for SciPy's own
code: it gets arrays while nothing follows the tensors.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.table import functions, ops, public_package, registry
from ..base.tree import flatten
from ..base.user_code import (
    computes_with_arrays,
    how_to_write_argument,
    in_place_operator,
    running_call,
)
from .convert import NotNumbers, as_tensor
from .numpy_functions import OnlyValues, instead, into_array, is_followed, of_values
from .op import Op
from .tensor import Operators

# The name in gradtape, from the array API, of each ufunc with another name in NumPy.
_UFUNCS = {
    "true_divide": "divide",
    "conjugate": "conj",
    "absolute": "abs",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
}
# The functions that do the same as a ufunc's methods.
_METHODS = {
    ("add", "reduce"): "sum",
    ("multiply", "reduce"): "prod",
    ("maximum", "reduce"): "max",
    ("minimum", "reduce"): "min",
    ("logical_and", "reduce"): "all",
    ("logical_or", "reduce"): "any",
    ("logaddexp", "reduce"): "logsumexp",
    ("add", "accumulate"): "cumsum",
    ("multiply", "accumulate"): "cumprod",
    ("fmax", "reduce"): "nanmax",
    ("fmin", "reduce"): "nanmin",
    ("maximum", "accumulate"): "cumulative_max",
    ("minimum", "accumulate"): "cumulative_min",
}
# What to use instead of the methods that tensors do not have.
_IN_PLACE_OF = {
    "at": "x.at[index].{at}(values), which returns a new tensor",
    "reduce": "gradtape.{name} on slices",
    "accumulate": "gradtape.{name} on slices",
    "reduceat": "a reduction of slices, or gradtape.nn.segment_sum",
    "outer": "gradtape.{name}(x[..., None], y)",
}
# NumPy functions that inspect values, and return no array with gradients.
_ABOUT = frozenset(
    "array2string array_equiv array_repr array_str iscomplex isreal may_share_memory "
    "min_scalar_type ravel_multi_index save savetxt savez savez_compressed shares_memory "
    "unravel_index".split()
)
# NumPy functions that only inspect dtypes, which a trace knows.
_ABOUT_DTYPES = frozenset("can_cast common_type iscomplexobj isrealobj result_type".split())
# These return the same in all code, and need no copies.
_LOOKING = _ABOUT | _ABOUT_DTYPES | {"ndim", "shape", "size"}
_IN_PLACE = frozenset({"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"})
# Of these, those that write into a writable array.
_INTO_WRITABLE = frozenset({"copyto", "fill_diagonal", "put", "put_along_axis"})
_AT = "x.at[index].set(values), or gradtape.where"
_ANOTHER = {name: f"gradtape.{name}" for name in ("fill_diagonal", "put_along_axis")}
_RENAMED = {"a_min": "min", "a_max": "max"}
_OTHER_NAMES = {"asanyarray": "asarray"}
# With like=, these have NumPy's default dtype, which differs from gradtape's.
_FLOAT64 = frozenset({"empty", "eye", "identity", "ones", "zeros"})
_VALUES = {
    "arange": ("start_or_stop", "stop", "step"),
    "array": ("object",),
    "asanyarray": ("a",),
    "asarray": ("a",),
    "full": ("fill_value",),
}
# Functions of several arrays that keep their own dtypes: a Python number has NumPy's.
_EACH_AS_IT_IS = frozenset(
    {"atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "meshgrid"}
)
_ANY_LAYOUT = frozenset({"array", "asanyarray", "asarray", "copy"})
_JOINS = frozenset({"concat", "concatenate", "hstack", "stack", "vstack"})
_MISSING = object()  # means "any value"
# The values with which an argument has no effect, so that it may be left out.
_NEUTRAL: dict[str, Any] = {
    "out": (None,),
    "where": (True, np._NoValue),
    "initial": (np._NoValue,),
    "mean": (np._NoValue,),
    "ddof": (np._NoValue,),
    "keepdims": (np._NoValue,),
    "dtype": (None,),
    "shape": (None,),
    "device": (None, "cpu"),
    "casting": ("same_kind",),
    "order": (None, "C"),
    "subok": (True, False),
    "mode": ("raise",),
    "returned": (False,),
    "sparse": (False,),
    "upper": (False,),
    "axis": (None,),
    "method": ("linear",),
    "weights": (None,),
    "fweights": (None,),
    "aweights": (None,),
    # these affect how NumPy computes, not the result
    "kind": _MISSING,
    "stable": _MISSING,
    "optimize": _MISSING,
    "overwrite_input": _MISSING,
    "assume_unique": _MISSING,
    "copy": _MISSING,
    "like": _MISSING,
}
_INSTEAD = {
    "out": "; a tensor never changes, so use the returned result",
    "where": "; choose with gradtape.where(condition, result, otherwise)",
    "dtype": "; cast with x.astype(dtype)",
    "casting": "; cast with x.astype(dtype)",
    "initial": "; combine it with the result afterwards",
}


def counterpart(function: Any) -> Callable[..., Any]:
    """Return gradtape's function for a NumPy function, with the same name and submodule.

    It is a public function of gradtape, or a plugin's op ``"<package>::<name>"``.

    Raises
    ------
    OnlyValues
        If there is none; the message lists near names, and shows how to register one.
    """
    family = _family(function)
    module = getattr(public_package(), family) if family else public_package()
    name = _OTHER_NAMES.get(function.__name__, function.__name__)
    ours = getattr(module, name, None)
    if callable(ours):
        return ours
    plugins = [op for full, op in registry().ops.items() if full.partition("::")[2] == name]
    if len(plugins) == 1:
        return plugins[0]
    raise OnlyValues(lambda: _no_counterpart(function, name, module))


def _family(function: Any) -> str:
    """Return ``"fft"`` or ``"linalg"`` for NumPy's functions there, otherwise an empty text."""
    family = (getattr(function, "__module__", None) or "").rpartition(".")[2]
    return family if family in ("fft", "linalg") else ""


def _no_counterpart(function: Any, name: str, module: Any) -> str:
    family = _family(function)
    theirs = getattr(np, family) if family else np
    kernel = f"{family}.{name}" if family else name
    shared = ((n, getattr(theirs, n, None)) for n in dir(module))
    known = [n for n, one in shared if callable(one) and not isinstance(one, type)]
    import difflib  # for errors only

    near = difflib.get_close_matches(name, known, 3)
    inputs = ("x", "y", "z")[: function.nin] if isinstance(function, np.ufunc) else ("x",)
    rules = ", ".join(f"{x!r}: rule" for x in inputs)
    return (
        f"numpy.{kernel} has no gradtape counterpart"
        + (f" (near names: {', '.join(near)})" if near else "")
        + "; use .numpy() to compute it outside the tape, or register it, where rule(g, x) is its "
        "gradient rule (or None):\n"
        "    from types import SimpleNamespace as Plugin\n"
        f"    op = gradtape.plugin.Op('mine::{name}', {kernel!r}, inputs={inputs}, "
        f"gradients={{{rules}}})\n"
        "    gradtape.register_plugin(Plugin(gradtape_ops=gradtape.hookimpl(lambda: [op])), 'mine')"
    )


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run gradtape's function for a ufunc or one of its methods, or NumPy's own on values.

    Raises
    ------
    TypeError
        For a method without such a function, for a tensor as ``out=``, and for ``where=`` and
        ``dtype=`` of a call. Also if only NumPy has the function and a tape, a trace or a batch is
        active. The message says what to use instead.
    """
    if "out" in kwargs and _takes_results(kwargs["out"]):
        return NotImplemented
    theirs = ufunc if method == "__call__" else getattr(ufunc, method)
    if (
        computes_with_arrays(sys._getframe(2))
        and _is_numpys(ufunc)
        and not _is_written(kwargs.get("out"), inputs[: method == "at"])
        and not is_followed(inputs, kwargs)
    ):
        return of_values(theirs, np.array, inputs, kwargs)
    try:
        return _call_ufunc(ufunc, method, inputs, kwargs)
    except (OnlyValues, NotNumbers) as error:
        return instead(error, theirs, inputs, kwargs)


def _takes_results(out: Any) -> bool:
    """Return whether ``out=`` is an array of gradtape's that can be written into."""
    return any(getattr(x, "_by_value", False) for x in (out if type(out) is tuple else (out,)))


def _call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not _is_numpys(ufunc):
        return _call_foreign(ufunc, method, inputs, kwargs)
    name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
    if method != "__call__":
        return _call_method(ufunc, name, method, inputs, kwargs)
    if kwargs:
        if name == "vecdot" and kwargs.keys() == {"axis"}:
            return counterpart(ufunc)(*inputs, **kwargs)
        _refuse(f"numpy.{ufunc.__name__}", name, kwargs)
    try:
        function: Any = ops[name]
    except LookupError:  # another name for an op, or a function made of several ops
        function = counterpart(ufunc)
    return function(*inputs)


def _is_numpys(ufunc: Any) -> bool:
    return getattr(np, ufunc.__name__, None) is ufunc


def _call_foreign(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run what a plugin has for a ufunc of another library."""
    found = registry().replacements.of(ufunc)
    if found is None or not callable(found[1]):
        raise OnlyValues(lambda: _no_replacement(ufunc))
    place, function = found
    if method == "outer" and ufunc.nin == 2 and not kwargs:
        return _outer(ufunc, *inputs)
    if method != "__call__":
        raise TypeError(
            f"{place}.{method} does not work on tensors; call {place}, and combine its results"
        )
    if kwargs:
        _refuse(place, function.__name__, kwargs)
    return function(*inputs)


def _no_replacement(ufunc: Any) -> str:
    return (
        f"no plugin has a gradtape op for the ufunc {ufunc.__name__!r}, which is not NumPy's; use "
        ".numpy() to compute it outside the tape, or write a plugin with an op for it (hook "
        "gradtape_functions)"
    )


def _refuse(place: str, name: str, kwargs: dict[str, Any]) -> None:
    """Raise for arguments that would have an effect."""
    refused = [key for key, value in kwargs.items() if not _is_neutral(key, value)]
    if "out" in refused:
        raise _written_by(place, kwargs["out"])
    if refused:
        raise TypeError(
            f"{place} with {refused} does not work on tensors"
            f"{_INSTEAD.get(refused[0], f'; use gradtape.{name}')}"
        )


def _written_by(place: str, target: Any) -> Exception:
    """Return the error for a ufunc that writes into ``target``: for ``a += x``, or for ``out=``."""
    statement = in_place_operator()
    if statement is None:
        return into_array(f"{place} with ['out']", target, _INSTEAD["out"].lstrip("; "))
    return into_array(statement[0], target, statement[1])


def _written_in(name: str, targets: Any) -> Exception:
    """Return the error for a function of NumPy that writes into its first argument."""
    if running_call() == "full_like":  # NumPy's runs copyto
        return OnlyValues(
            lambda: (
                "numpy.full_like fills a NumPy array with the value of a tensor, which gradients "
                "cannot follow; use gradtape.full_like, or pass .numpy() of the tensor"
            )
        )
    advice = f"create a new tensor with {_ANOTHER.get(name, _AT)}"
    if name in _INTO_WRITABLE:
        advice = f"{how_to_write_argument(name)}, or {advice}"
    return into_array(f"numpy.{name}", targets, f"a tensor never changes: {advice}")


def _call_method(
    ufunc: Any, name: str, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a ufunc's method: ``reduce``, ``accumulate`` or ``outer``."""
    place = f"numpy.{ufunc.__name__}.{method}"
    if method == "outer" and ufunc.nin == 2:
        _refuse(place, name, kwargs)
        return _outer(ufunc, *inputs)
    if (name, method) not in _METHODS:
        advice = _IN_PLACE_OF.get(method, "gradtape.{name}")
        advice = advice.format(name=name, at=name if name in ("add", "subtract") else "set")
        if method == "at" and name in ("add", "subtract"):
            x = "x" if isinstance(inputs[0], Operators) else "gradtape.constant(x)"
            how = how_to_write_argument(f"{name}.at")
            how += f", or use {x}.at[index].{name}(values), which returns a new tensor"
            raise into_array(place, inputs[:1], how)
        if method == "at":
            raise into_array(place, inputs[:1], f"use {advice}")
        raise TypeError(f"{place} does not work on tensors; use {advice}")
    function = functions[_METHODS[name, method]]
    takes = _parameters(function) or {}
    options = {"axis": 0, **kwargs}
    _refuse(place, function.__name__, {k: v for k, v in options.items() if k not in takes})
    if "out" in options:
        _refuse(place, function.__name__, {"out": options.pop("out")})
    given = {k: v for k, v in options.items() if k in takes and v is not np._NoValue}
    if method == "accumulate" and given["axis"] is None:
        raise ValueError(f"{place}: axis must be an integer, got None")
    return function(*inputs, **given)


def _outer(ufunc: Any, x: Any, y: Any) -> Any:
    """Apply a ufunc to each element of ``x`` with each of ``y``."""
    x, y = as_tensor(x), as_tensor(y)
    if y.shape is None:
        raise ValueError(
            f"numpy.{ufunc.__name__}.outer: the rank of the second array is unknown in this trace; "
            "give its TensorSpec a rank"
        )
    if y.shape:
        x = ops["expand_dims"](x, axis=tuple(range(-len(y.shape), 0)))
    return call_ufunc(ufunc, "__call__", (x, y), {})


def call_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run gradtape's function for one of NumPy's, or NumPy's own on values.

    NumPy's own runs if it only inspects values. While no tape, trace or batch is active, it also
    runs if gradtape has no such function, if it writes into an array, and if its arguments are not
    all numbers.

    Raises
    ------
    TypeError
        If gradtape has no such function and a tape, a trace or a batch is active, or if gradtape's
        function does not support one of the arguments.
    """
    if "out" in kwargs and _takes_results(kwargs["out"]):
        return NotImplemented
    if (
        computes_with_arrays(sys._getframe(2))
        and function.__name__ not in _LOOKING
        and not _is_written(*_targets(function, args, kwargs))
        and not is_followed(args, kwargs)
    ):
        return of_values(function, np.array, args, kwargs)
    try:
        return _call_function(function, args, kwargs)
    except (OnlyValues, NotNumbers) as error:
        return instead(error, function, args, kwargs)


def _is_written(*targets: Any) -> bool:
    """Return whether one of the places that NumPy writes to is a tensor, which never changes."""
    return any(isinstance(x, Operators) for x in flatten(targets))


def _targets(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the arguments of NumPy's function that it writes to."""
    theirs = _parameters(function) or {}
    given = {**({} if _variadic(theirs) else dict(zip(theirs, args))), **kwargs}
    first = args[:1] or list(kwargs.values())[:1]
    inside = function.__name__ in _IN_PLACE
    inside = inside or (function is np.nan_to_num and not given.get("copy", True))
    return [given.get("out"), *(first if inside else ())]


def _call_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = function.__name__
    if kwargs.get("device") == "cpu":  # NumPy's only device: without a meaning for tensors
        kwargs = {key: value for key, value in kwargs.items() if key != "device"}
    if name in ("ndim", "shape", "size") and len(args) + len(kwargs) == 1:
        (x,) = (*args, *kwargs.values())
        return getattr(x, name)
    if name in _ABOUT:
        return of_values(function, np.asarray, args, kwargs)
    if name in _ABOUT_DTYPES:
        return of_values(function, lambda x: np.empty(0, x.dtype), args, kwargs)
    if name in _IN_PLACE:
        raise _written_in(name, args[:1] or list(kwargs.values())[:1])
    if name == "where" and len(args) == 1:
        function, name = np.nonzero, "nonzero"
    ours = counterpart(function)
    places, names = _straight(function, ours)
    if len(args) <= places and names.keys() >= kwargs.keys():  # the most common case
        return ours(*args, **{names[key]: x for key, x in kwargs.items() if x is not np._NoValue})
    theirs, takes = _parameters(function), _parameters(ours)
    if theirs is None or takes is None:
        return ours(*args, **{key: x for key, x in kwargs.items() if not _is_neutral(key, x)})
    if _variadic(theirs) or _variadic(takes):
        # positional arguments are the arrays: only keywords have to be matched
        given: dict[str, Any] = dict(kwargs)
        if name in _EACH_AS_IT_IS:
            args = tuple(_as_numpy_would(x) for x in args)
    else:
        args, given = (), _by_name(theirs, args, kwargs)
    if name in _FLOAT64 and given.get("dtype") is None:
        given["dtype"] = np.float64
    for key in _VALUES.get(name, ()):
        if key in given:
            given[key] = _as_numpy_would(given[key])
    wanted, further = _apart(name, given, theirs, takes)
    finish: Callable[[Any], Any] | None = None
    if "dtype" in further and name in _JOINS:
        finish = _cast_within_kind(name, further.pop("dtype"))
    elif "dtype" in further and _reduces(name):
        first = next(iter(takes))
        wanted[first] = _cast(further.pop("dtype"))(wanted[first])
    for key, value in further.items():
        place = f"{_family(function)}.{name}".lstrip(".")
        if key == "out":
            raise into_array(f"numpy.{place}: out=", value, _INSTEAD["out"].lstrip("; "))
        raise TypeError(
            f"numpy.{place}: {key}={_shown(value)} does not work on tensors; gradtape.{place} "
            f"takes {', '.join(takes)}{_INSTEAD.get(key, '')}"
        )
    result = _call(ours, takes, args, wanted)
    return result if finish is None else finish(result)


def _apart(
    name: str, given: dict[str, Any], theirs: Any, takes: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return arguments for gradtape's function, and those that it does not take and that matter."""
    wanted: dict[str, Any] = {}
    further: dict[str, Any] = {}
    for key, value in given.items():
        target = _target(key, theirs, takes)
        if target is None:
            neutral = value is None if _orders_fields(name, key) else _is_neutral(key, value)
            if not neutral and not (key == "order" and _keeps_layout(name, value)):
                further[key] = value
        elif value is not np._NoValue:
            wanted[target] = value
    return wanted, further


_KEYWORDS = inspect.Parameter.VAR_KEYWORD


def _by_name(
    theirs: dict[str, inspect.Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments by NumPy's names for them."""
    bound = inspect.Signature(list(theirs.values())).bind(*args, **kwargs).arguments
    given: dict[str, Any] = {}
    for key, value in bound.items():
        given.update(value if theirs[key].kind is _KEYWORDS else {key: value})
    return given


@functools.lru_cache(maxsize=1024)
def _straight(function: Any, ours: Any) -> tuple[int, dict[str, str]]:
    """Return how many positional and which named arguments can be passed on unchanged."""
    theirs, takes = _parameters(function), _parameters(ours)
    name = function.__name__
    if theirs is None or takes is None or name in _FLOAT64 or name in _VALUES:
        return -1, {}
    if _variadic(theirs) or _variadic(takes):
        return -1, {}
    places = 0
    for key, (target, parameter) in zip(theirs, takes.items()):
        if _target(key, theirs, takes) != target or parameter.kind is parameter.KEYWORD_ONLY:
            break
        places += 1
    found = {key: _target(key, theirs, takes) for key in theirs}
    names = {
        key: target
        for key, target in found.items()
        if target in takes and takes[target].kind is not inspect.Parameter.POSITIONAL_ONLY
    }
    return places, names


@functools.lru_cache(maxsize=1024)
def _parameters(function: Any) -> dict[str, inspect.Parameter] | None:
    """Return a function's parameters by name; ``None`` if it has no signature."""
    if isinstance(function, Op):
        kinds = inspect.Parameter
        array = kinds.VAR_POSITIONAL if function.variadic else kinds.POSITIONAL_ONLY
        arrays = [inspect.Parameter(name.lstrip("*"), array) for name in function.inputs]
        settings = [inspect.Parameter(name, kinds.KEYWORD_ONLY) for name in function.defaults]
        return {parameter.name: parameter for parameter in (*arrays, *settings)}
    try:
        return dict(inspect.signature(function).parameters)
    except ValueError:
        return None


def _variadic(parameters: dict[str, inspect.Parameter]) -> bool:
    return any(p.kind is p.VAR_POSITIONAL for p in parameters.values())


def _target(
    key: str, theirs: dict[str, inspect.Parameter], takes: dict[str, inspect.Parameter]
) -> str | None:
    """Return the name of NumPy's argument in gradtape's function, ``None`` if it has none."""
    key = key if key in takes else _RENAMED.get(key, key)
    if key in takes or any(p.kind is _KEYWORDS for p in takes.values()):
        return key
    # the arrays come first in both, under other names ("a" and "x")
    position = list(theirs).index(key) if key in theirs else len(takes)
    same = list(takes)[position] if position < len(takes) else None
    return same if same is not None and same not in theirs else None


def _call(
    ours: Any, takes: dict[str, inspect.Parameter], args: tuple[Any, ...], wanted: dict[str, Any]
) -> Any:
    """Call with positional arguments as far as possible, and with keywords after that."""
    positional = list(args)
    if not args:
        for name, parameter in takes.items():
            if name not in wanted or parameter.kind is parameter.KEYWORD_ONLY:
                break
            positional.append(wanted.pop(name))
    return ours(*positional, **wanted)


def _shown(value: Any) -> str:
    return repr(value) if np.isscalar(value) or isinstance(value, tuple) else type(value).__name__


def _is_neutral(key: str, value: Any) -> bool:
    """Return whether an argument that gradtape's function lacks has no effect."""
    neutral = _NEUTRAL.get(key, ())
    if neutral is _MISSING:
        return True
    return any(value is x or (type(value) is str and value == x) for x in neutral)


def _keeps_layout(name: str, order: Any) -> bool:
    """Return whether ``order`` only means the memory layout, which tensors do not show."""
    return name.endswith("_like") or name in _ANY_LAYOUT


def _orders_fields(name: str, key: str) -> bool:
    """Return whether ``order`` names fields to sort by, and not a memory layout."""
    return key == "order" and name.removeprefix("arg") in ("sort", "partition")


def _reduces(name: str) -> bool:
    known = ("sum", "prod", "mean", "std", "var", "cumsum", "cumprod", "trace")
    return name.removeprefix("nan") in known or name in ("cov", "corrcoef")


def _cast(dtype: Any) -> Callable[[Any], Any]:
    return lambda x: as_tensor(x).astype(dtype)


def _cast_within_kind(name: str, dtype: Any) -> Callable[[Any], Any]:
    def finish(x: Any) -> Any:
        if not np.can_cast(x.dtype, dtype, "same_kind"):
            raise TypeError(
                f"{name}: a cast from {x.dtype} to {np.dtype(dtype)} would lose information; to "
                "cast anyway, use x.astype(dtype)"
            )
        return x.astype(dtype)

    return finish


def _as_numpy_would(value: Any) -> Any:
    """Return Python numbers in NumPy's default dtypes, which differ from gradtape's."""
    if any(isinstance(leaf, Operators) for leaf in flatten([value])):
        return value
    return np.asarray(value) if isinstance(value, (float, complex, list, tuple)) else value
