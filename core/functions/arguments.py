"""The arguments of a call: as Python binds them, and whether a trace takes them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections import UserList, deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence, Set
from types import FrameType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..base.array_types import TensorSpec, describe
from ..base.dtypes import SCALARS
from ..base.sizes import Shape, is_open, same_size, sizes_differ
from ..base.table import ops
from ..base.tree import flatten, map_structure
from ..errors import TraceError
from ..ops.dispatch import is_transformed
from ..tensors.convert import as_tensor
from ..tensors.data_frames import walked_instead
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable

# Modules that accept functions without a name: Python's ``copy``, and picklers of code.
_TAKE_ANY = frozenset({"copy", "cloudpickle", "dill", "_dill"})


def found_by_name(value: Any) -> bool:
    """Return whether pickle finds a function by its name."""
    found: Any = sys.modules.get(str(value.__module__))
    for part in getattr(value, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is value


def pickled_as_code() -> bool:
    """Return whether the caller copies functions, or pickles them as code.

    Such picklers accept functions without a name, and those of the main module, which is a
    different module in each process.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__")).rpartition(".")[2] in _TAKE_ANY:
            return True
        frame = frame.f_back
    return False


# -- identity --------------------------------------------------------------------------------------


def name_of(f: Any) -> str:
    """Return a function's name for messages."""
    return str(getattr(f, "__qualname__", getattr(f, "__name__", repr(f)))).split("<locals>.")[-1]


def identity_of(f: Any) -> Any:
    """Return a key that is equal for functions that do the same, as far as this is known.

    A function that is defined inside another one is a new object each time. It does the same if it
    has the same code and captures the same objects. The key contains ids: keep the function.
    """
    if isinstance(f, MethodType):
        return identity_of(f.__func__), id(f.__self__)
    if isinstance(f, functools.partial):
        named = tuple((key, key_of(x)) for key, x in f.keywords.items())
        return identity_of(f.func), tuple(map(key_of, f.args)), named
    if not isinstance(f, FunctionType):
        return id(f)
    named = tuple((f.__kwdefaults__ or {}).items())
    held = [*(f.__defaults__ or ()), *(x for _, x in named)]
    return f.__code__, tuple(map(key_of, held)), tuple(map(_content, f.__closure__ or ()))


def _content(cell: Any) -> Any:
    try:
        return key_of(cell.cell_contents)
    except ValueError:  # empty
        return id(cell)


def key_of(x: Any) -> Any:
    """Return a key of a Python value: the content of what cannot change, the identity of others."""
    if type(x) in (float, complex):
        return repr(x)  # 0.0 and -0.0 differ, and nan does not
    if x is None or type(x) in (bool, int, str, bytes):
        return type(x), x
    return tuple(map(key_of, x)) if type(x) is tuple else id(x)


# -- parameters ------------------------------------------------------------------------------------


# Functions whose calls do not run their code.
_NO_TRACE: dict[str, Callable[[Any], bool]] = {
    "a generator": inspect.isgeneratorfunction,
    "a coroutine": inspect.iscoroutinefunction,
    "an asynchronous generator": inspect.isasyncgenfunction,
}


def signatures_of(
    function: Callable[..., Any], name: str
) -> tuple[inspect.Signature, inspect.Signature]:
    """Return the signature that names a function's parameters, and the one that binds arguments.

    Raises
    ------
    TypeError
        If its parameters cannot be known, or it is a generator or a coroutine.
    """
    for kind, asks in _NO_TRACE.items():
        if asks(function):
            raise TypeError(
                f"function {name!r} is {kind}, which runs after its trace has ended; "
                "return values instead (gradtape.scan and gradtape.while_loop repeat)"
            )
    try:
        if isinstance(function, np.ufunc):
            raise ValueError("its optional parameters do not all go together")
        named = inspect.signature(function)
        # a transformed function distinguishes positional from keyword arguments
        as_given = getattr(function, "_as_given", False)
        return named, inspect.signature(function, follow_wrapped=False) if as_given else named
    except ValueError:
        raise TypeError(
            f"function: the parameters of {function!r} are unknown; wrap it in a "
            "Python function (and use gradtape's op instead of NumPy's)"
        ) from None


def static_key(leaf: Any, what: str) -> Any:
    """Return the key by which a Python value selects a trace.

    Raises
    ------
    TypeError
        If it is not hashable.
    """
    # 2 and 2.0 are different arguments; so are True and 1, and 0.0 and -0.0
    if type(leaf) in (float, complex):
        return repr(leaf)
    try:
        hash(leaf)
    except TypeError:
        raise TypeError(
            f"{what} of type {type(leaf).__name__} is neither a tensor nor hashable, so it "
            f"cannot select a trace; {_hashable_instead(leaf)}"
        ) from None
    return (type(leaf), leaf)


def _hashable_instead(leaf: Any) -> str:
    """Return what to pass instead of an argument that selects no trace."""
    if hasattr(type(leaf), "__array__"):
        return "pass a tensor, which gradtape.constant makes of it, or a hashable value"
    return walked_instead(leaf) or "pass a tensor or a hashable value"


def check_result(leaf: Any, name: str) -> None:
    """Raise ``TraceError`` for a part of a result whose tensors have no value after the trace.

    They are in containers that are not walked, in attributes of an object, or in a generator.
    """
    kind = type(leaf)
    if kind in SCALARS or isinstance(leaf, (str, bytes, np.ndarray, type(None))):
        return
    late = isinstance(leaf, (Generator, Coroutine, map, filter, zip))
    if late or any(isinstance(x, Tensor) and is_transformed(x.array) for x in _held_by(leaf)):
        what = "runs after the trace" if late else "holds traced tensors, which have no value later"
        raise TraceError(
            f"{name}: it returns a {kind.__name__}, which {what}; return tensors in a tuple, a "
            "list, a dictionary or a typing.NamedTuple"
        )


def _held_by(leaf: Any) -> list[Any]:
    """Return what a container that is not walked holds, or an object in its attributes."""
    if isinstance(leaf, Mapping):
        return flatten(list(leaf.values()))
    if isinstance(leaf, (Set, deque, UserList)):
        return flatten(list(leaf))
    names = [name for base in type(leaf).__mro__ for name in getattr(base, "__slots__", ())]
    slots = [getattr(leaf, name, None) for name in names if isinstance(name, str)]
    return flatten([*slots, *getattr(leaf, "__dict__", {}).values(), getattr(leaf, "data", None)])


def argument_dtype(leaf: Any, spec: TensorSpec) -> str:
    """Return the dtype of a tensor among arguments; for a Python number, the declared dtype."""
    weak = type(leaf) in SCALARS or is_open(leaf)
    return spec.dtype.name if weak else as_tensor(leaf).dtype.name


def as_inputs(inputs: Any) -> Any:
    """Return a layer's inputs as a tensor, or a container of arrays as a container of tensors.

    ``None`` in a container is an input that is missing, and stays.

    Parameters
    ----------
    inputs
        The first argument of the layer's call.
    """
    if not are_several(inputs):
        return as_tensor(inputs)
    return map_structure(lambda x: None if x is None else as_tensor(x), inputs)


def are_several(inputs: Any) -> bool:
    """Return whether inputs are a container of arrays, not one array as lists of numbers.

    Parameters
    ----------
    inputs
        The first argument of the layer's call.
    """
    if isinstance(inputs, dict):
        return True
    return isinstance(inputs, (list, tuple)) and any(hasattr(x, "shape") for x in flatten(inputs))


def fit(leaf: Any, spec: TensorSpec, name: str, position: int) -> Tensor:
    """Return ``leaf`` as a tensor that fits ``spec``, or raise an error that says what differs."""
    tensor = as_tensor(leaf)
    if tensor.dtype != spec.dtype:
        weak = type(leaf) in SCALARS or is_open(leaf) or isinstance(leaf, (list, tuple))
        if not weak:
            raise TypeError(
                f"{name}: argument {position} must be {spec}, got dtype {tensor.dtype}; "
                f"cast it with .astype({spec.dtype.name!r})"
            )
        _check_whole(tensor, spec, f"{name}: argument {position}")
        tensor = as_tensor(leaf, spec.dtype)
    if not spec.admits(tensor.shape):
        raise ValueError(
            f"{name}: argument {position} must be {spec}, "
            f"got {describe(tensor.shape, tensor.dtype)}"
        )
    return tensor


def fits_surely(spec: TensorSpec, x: Tensor) -> bool:
    """Return whether what a trace knows of a tensor ensures that it fits a spec."""
    if spec.shape is None or x.shape is None:
        return spec.shape is None
    return all(
        want is None or same_size(want, n) for want, n in zip(spec.shape, x.shape, strict=True)
    )


def with_checked_shape(x: Tensor, shape: Shape) -> Tensor:
    """Return a tensor with a shape that it may have; each run checks what the trace does not know.

    Parameters
    ----------
    x
        The tensor.
    shape
        Its sizes, ``None`` for any; or ``None`` for any rank.
    """
    if shape is None:
        return x
    if x.shape is None:
        x = ops["transpose"](x, axes=tuple(range(len(shape))))  # which fails for other ranks
    for axis, want in enumerate(shape):
        if want is not None and not same_size(want, x.shape[axis]):
            # one axis at a time, so that no axis compensates for another
            x = ops["reshape"](x, shape=(*x.shape[:axis], want, *x.shape[axis + 1 :]))
    return x


def with_checked_specs(tensors: Iterable[Tensor], specs: Iterable[TensorSpec]) -> list[Tensor]:
    """Return tensors that each run checks against their specs, and the names in these.

    Parameters
    ----------
    tensors
        Tensors that may fit, as far as the trace knows.
    specs
        A spec for each.
    """
    sizes: dict[str | None, Any] = {}
    result = []
    for x, spec in zip(tensors, specs, strict=True):
        x = with_checked_shape(x, spec.shape)
        if spec.names is not None:
            named = zip(spec.names, x.shape, strict=True)
            wanted = [None if name is None else sizes.setdefault(name, n) for name, n in named]
            x = with_checked_shape(x, tuple(wanted))
        result.append(x)
    return result


def conflicting_sizes(named: Iterable[tuple[str, Sequence[str | None], Any]]) -> str | None:
    """Describe two differing sizes of one name in ``(argument, names, shape)``; None if equal."""
    known: dict[str, dict[Any, str]] = {}  # by name: sizes, and where each appears first
    for argument, names, shape in named:
        if shape is None:  # an enclosing trace does not know it
            continue
        for axis, (name, size) in enumerate(zip(names, shape, strict=True)):
            if name is None:
                continue
            place = f"{size} in axis {axis} of {argument}"
            sizes = known.setdefault(name, {})
            for other, where in sizes.items():
                if sizes_differ(other, size):
                    equal = "sizes with the same name must be equal in a call"
                    return f"size {name!r} is {where} and {place}; {equal}"
            sizes.setdefault(size, place)
    return None


def same_value(a: Any, b: Any) -> bool:
    """Return whether two Python arguments select the same trace."""
    if type(a) is not type(b):
        return False
    return repr(a) == repr(b) if type(a) in (float, complex) else bool(a == b)


def as_declared(args: Any, signature: Any) -> Any:
    """Turn lists of numbers into tensors where tensors are declared."""
    if isinstance(signature, TensorSpec):
        if not isinstance(args, (list, tuple)):
            return args
        _check_whole(as_tensor(args), signature, "an argument")
        return as_tensor(args, signature.dtype)
    alike = type(args) is type(signature)
    if alike and type(args) in (tuple, list) and len(args) == len(signature):
        return type(args)(as_declared(a, s) for a, s in zip(args, signature, strict=True))
    if alike and type(args) is dict:
        return {key: as_declared(x, signature.get(key)) for key, x in args.items()}
    return args


def _check_whole(given: Tensor, spec: TensorSpec, what: str) -> None:
    """Refuse Python floats where integers are declared, because they would be truncated."""
    fraction = spec.dtype.kind in "biu" and given.dtype.kind in "fc"
    if fraction and sizes_differ(given.size, 0):  # an empty list becomes floats
        raise TypeError(
            f"{what} must be {spec}, got Python numbers of kind {given.dtype.name}; round them, or "
            f"cast a tensor of them with .astype({spec.dtype.name!r})"
        )


def call_text(args: Any, kwargs: Any) -> str:
    """Return arguments as messages show them: arrays by shape and dtype, without values."""
    args, kwargs = map_structure(_kind, (args, kwargs))
    return ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, (Tensor, Variable, np.ndarray, np.generic)):
        return TensorSpec(leaf.shape, leaf.dtype)
    return leaf
