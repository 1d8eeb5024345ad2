"""Data types, and the precision policies that choose them for layers.

The types are NumPy's, with ``float32`` as the type of Python floats. Promotion is NumPy 2's: Python
scalars are weak, arrays are not.

A policy says in which dtype layers compute, and which dtype their variables have. NumPy has no
``bfloat16``, so tensors cannot have it either: values computed in it are ``float32`` numbers
rounded to ``bfloat16``. Products of such values, summed in ``float32``, are the same as on hardware
that multiplies ``bfloat16``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..errors import TraceError
from .context import Setting, active_graph
from .table import ops

#: Python scalars are weak: they take the dtype of the arrays that they are combined with.
SCALARS = frozenset({bool, int, float, complex})

_default = np.dtype(np.float32)
_COMPLEX = {"float16": np.complex64, "float32": np.complex64, "float64": np.complex128}


def default_dtype() -> np.dtype[Any]:
    """Return the dtype of tensors made from Python floats (``float32`` by default).

    Returns
    -------
    numpy.dtype
        ``float16``, ``float32`` or ``float64``.

    Examples
    --------
    >>> gt.default_dtype().name
    'float32'
    """
    return _default


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of tensors made from Python floats, in the whole process.

    Parameters
    ----------
    dtype
        ``float16``, ``float32`` or ``float64``. Python's complex numbers get the matching precision
        (``complex64`` for ``float16`` too).

    Raises
    ------
    ValueError
        If it is another dtype.

    Examples
    --------
    >>> gt.set_default_dtype("float64")
    >>> gt.constant(1.0).dtype.name
    'float64'
    >>> gt.set_default_dtype("float32")
    """
    global _default
    new = np.dtype(dtype)
    if new.kind != "f" or new.name not in _COMPLEX:
        raise ValueError(
            f"set_default_dtype: the default must be float16, float32 or float64, got {new.name}"
        )
    _default = new


def default_complex_dtype() -> np.dtype[Any]:
    """Return the complex dtype of the default precision."""
    return np.dtype(_COMPLEX[_default.name])


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return ``dtype`` as a NumPy dtype; raise for one that tensors cannot have.

    Raises
    ------
    TypeError
        If ``dtype`` is not a boolean, integer, floating or complex type.
    """
    if type(dtype) in DTYPES:
        return dtype
    try:
        result = np.dtype(dtype)
    except TypeError as error:
        refuse_bfloat16(dtype)
        try:
            if type(dtype).__module__ == "builtins":  # not another library's dtype
                raise
            result = numpy_dtype(dtype)
        except TypeError:
            sizes = "; give several sizes as one tuple" if type(dtype) is int else ""
            raise TypeError(
                f"{dtype!r} is not a dtype; use a name such as 'float32'{sizes}"
            ) from error
    if type(result) not in DTYPES:
        refuse_bfloat16(result)
        raise TypeError(
            f"a tensor holds booleans, integers, floats or complex numbers, not dtype {result}"
        )
    return result


def refuse_bfloat16(dtype: Any) -> None:
    """Raise for ``bfloat16`` with a message that says what to use instead."""
    if str(dtype) == "bfloat16":
        raise TypeError(
            "tensors cannot have dtype bfloat16; layers compute in it with "
            "mixed_precision.policy('mixed_bfloat16')"
        )


#: The types of NumPy's dtypes: a look-up is much faster than ``isinstance``.
DTYPES = frozenset(type(np.dtype(char)) for char in "?bhilqBHILQefdgFDG")
# The dtypes that hold all values of ml_dtypes' smaller ones, by the beginnings of their names.
_HOLDING = {"bfloat": "float32", "float": "float32", "int": "int8", "uint": "uint8"}
# NumPy's dtypes, by other libraries' dtypes of the same name.
_OTHERS: dict[Any, np.dtype[Any]] = {}


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of any library's array as a NumPy dtype.

    Parameters
    ----------
    dtype
        A NumPy dtype, or another whose text ends in the name of one, such as ``torch.float32``.

    Raises
    ------
    TypeError
        If NumPy has no dtype of that name.
    """
    if type(dtype) in DTYPES or isinstance(dtype, np.dtype):
        return dtype
    found = _OTHERS.get(dtype)
    if found is None:
        name = str(dtype).rpartition(".")[2]
        try:
            found = _OTHERS[dtype] = np.dtype(name)
        except TypeError as error:
            raise TypeError(f"a tensor cannot hold {dtype}: NumPy has no such dtype") from error
    return found


def wider_dtype(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype that holds all values of ``bfloat16``, ``float8_e5m2``, ``int4``, ...

    It is None for NumPy's own dtypes, and for those of other things than numbers.
    """
    if type(dtype) in DTYPES:
        return None
    found = _HOLDING.get(dtype.name.partition("_")[0].rstrip("0123456789"))
    return None if found is None else np.dtype(found)


def kind_of(dtype: Any) -> str:
    """Return NumPy's letter for the kind of a dtype of any array library: ``"f"``, ``"c"``, ..."""
    kind: str | None = getattr(dtype, "kind", None)
    return kind or numpy_dtype(dtype).kind


def is_differentiable(dtype: np.dtype[Any]) -> bool:
    """Return whether gradients exist for ``dtype``: floating and complex types only."""
    return dtype.kind in "fc"


# -- precision policies ----------------------------------------------------------------------------


_MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}

#: Empty until the first use of a policy: until then, :data:`computing` is not read.
CASTING: list[str] = []
#: The dtype in which a layer's code reads its variables; None for their own.
computing: ContextVar[str | None] = ContextVar("gradtape_computing", default=None)


class Policy:
    """The dtype in which a layer computes, and the dtype of its variables.

    Parameters
    ----------
    name
        ``"mixed_float16"``, ``"mixed_bfloat16"``, or a floating dtype for both.

    Attributes
    ----------
    compute_dtype : str
        The dtype in which the layer computes: ``"float16"``, ``"bfloat16"``, ``"float32"``, ...
        For ``bfloat16``, tensors are ``float32`` with values rounded to ``bfloat16``.
    variable_dtype : str
        The dtype of its variables: ``"float32"`` for a mixed policy.

    Raises
    ------
    ValueError
        If there is no policy of that name.

    Examples
    --------
    >>> half = gt.mixed_precision.Policy("mixed_float16")
    >>> half.compute_dtype, half.variable_dtype
    ('float16', 'float32')
    """

    __slots__ = ("compute_dtype", "name", "variable_dtype")

    def __init__(self, name: str) -> None:
        if name not in _MIXED:
            try:
                if as_dtype(name).kind != "f":
                    raise TypeError(name)
            except TypeError:
                hint = "; use 'mixed_bfloat16'" if name == "bfloat16" else ""
                raise ValueError(
                    f"unknown precision policy {name!r}; a policy is one of {(*_MIXED, 'float32')} "
                    f"or another floating dtype of tensors{hint}"
                ) from None
        self.name = name if name in _MIXED else as_dtype(name).name
        self.compute_dtype = _MIXED.get(self.name, self.name)
        self.variable_dtype = "float32" if self.mixed else self.name

    @property
    def mixed(self) -> bool:
        """Whether the two dtypes differ."""
        return self.name in _MIXED

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[type[Policy], tuple[str]]:
        return Policy, (self.name,)

    def __repr__(self) -> str:
        return f"<Policy {self.name!r}>"


_FLOAT32 = Policy("float32")
_selected = _FLOAT32
_scoped: ContextVar[Policy | None] = ContextVar("gradtape_policy", default=None)


def get_policy() -> Policy:
    """Return the policy of layers that are created now without a ``dtype``.

    Returns
    -------
    Policy
        The policy of the innermost :func:`gradtape.mixed_precision.policy` block, otherwise the one
        that :func:`gradtape.mixed_precision.set_policy` set; ``float32`` by default.

    Examples
    --------
    >>> gt.mixed_precision.get_policy()
    <Policy 'float32'>
    """
    return _scoped.get() or _selected


def set_policy(policy: str | Policy) -> None:
    """Set the policy of layers that are created from now on, in the whole process.

    Parameters
    ----------
    policy
        ``"mixed_float16"``, ``"mixed_bfloat16"``, or the default, ``"float32"``, with which a layer
        computes in the dtype of its input and weights.

    Raises
    ------
    ValueError
        If it is another policy.

    Examples
    --------
    >>> gt.mixed_precision.set_policy("mixed_float16")
    >>> gt.layers.Dense(2).compute_dtype
    'float16'
    >>> gt.mixed_precision.set_policy("float32")
    """
    global _selected
    _selected = _for_all(policy, "set_policy")


@contextmanager
def policy(policy: str | Policy) -> Iterator[Policy]:
    """Set the policy of layers that are created in a block.

    Layers keep the policy that they were created with, wherever they are called.

    Parameters
    ----------
    policy
        As for :func:`gradtape.mixed_precision.set_policy`.

    Yields
    ------
    Policy
        The policy.

    Raises
    ------
    ValueError
        If there is no policy of that name, or it does not apply to all layers.

    Examples
    --------
    >>> with gt.mixed_precision.policy("mixed_bfloat16"):
    ...     layer = gt.layers.Dense(2)
    >>> layer.policy
    <Policy 'mixed_bfloat16'>
    """
    chosen = _for_all(policy, "policy")
    with Setting(_scoped, chosen):
        yield chosen


def _for_all(policy: str | Policy, method: str) -> Policy:
    found = policy if isinstance(policy, Policy) else Policy(policy)
    if not found.mixed and found != _FLOAT32:
        raise ValueError(
            f"{method}: {found.name!r} cannot be the policy of all layers; pass it to a layer as "
            "dtype=, or use set_default_dtype"
        )
    return found


def as_policy(dtype: Any) -> Policy | None:
    """Return the policy of a layer's ``dtype`` argument; None if it has no policy of its own."""
    if dtype is None:
        found = get_policy()
        if not found.mixed:
            return None
    elif isinstance(dtype, Policy):
        found = dtype
    elif isinstance(dtype, str) and dtype in (*_MIXED, "bfloat16"):
        found = Policy(dtype)
    elif as_dtype(dtype).kind == "f":
        found = Policy(as_dtype(dtype).name)
    else:
        return None
    if (found.mixed or found == _FLOAT32) and not CASTING:
        CASTING.append(found.name)
    return found


def computing_in(dtype: str | None) -> Setting[str | None]:
    """Run a block that reads variables in a dtype, or in their own dtypes for None."""
    return Setting(computing, dtype)


def in_precision(x: Any, dtype: str | None) -> Any:
    """Return a floating tensor in a dtype of :data:`computing`; any other tensor unchanged.

    Only narrower dtypes are cast to ``float32``.
    """
    if dtype is None or kind_of(x.array.dtype) != "f":
        return x
    own = numpy_dtype(x.array.dtype).name
    if dtype == "bfloat16":
        return ops["round_to_bfloat16"](x if own == "float32" else ops["cast"](x, dtype="float32"))
    if own == dtype or (dtype == "float32" and own != "float16"):
        return x
    return ops["cast"](x, dtype=dtype)


# -- the precision of matrix products --------------------------------------------------------------


_PRECISIONS = ("default", "float32", "tf32")
#: What other libraries call them.
_SAME = {"highest": "float32", "high": "tf32", "tensorfloat32": "tf32"}

_of_process = "default"
_of_block: ContextVar[str | None] = ContextVar("gradtape_matmul_precision", default=None)


def get_matmul_precision() -> str:
    """Return the precision of products of ``float32`` matrices that are computed now.

    A backend whose products can be less precise reads it whenever it computes one. What it compiles
    for one precision, it must not run in another.

    Returns
    -------
    str
        The precision of the innermost :func:`gradtape.mixed_precision.matmul_precision` block,
        otherwise the one that :func:`gradtape.mixed_precision.set_matmul_precision` set.

    Examples
    --------
    >>> gt.mixed_precision.get_matmul_precision()
    'default'
    """
    return _of_block.get() or _of_process


def set_matmul_precision(precision: str) -> None:
    """Set the precision of products of ``float32`` matrices, in the whole process.

    Parameters
    ----------
    precision
        As for :func:`gradtape.mixed_precision.matmul_precision`.

    Raises
    ------
    ValueError
        If it is another precision.
    TraceError
        In a function that is being traced.

    Examples
    --------
    >>> gt.mixed_precision.set_matmul_precision("tf32")
    >>> gt.mixed_precision.get_matmul_precision()
    'tf32'
    >>> gt.mixed_precision.set_matmul_precision("default")
    """
    global _of_process
    _of_process = _checked_precision(precision, "set_matmul_precision")


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Set the precision of products of ``float32`` matrices that are computed in a block.

    It applies to matrix products and convolutions of arrays, eager and compiled, and to those of
    gradients. A compiled function follows the precision where it is called, not where it was
    traced. Other dtypes are not affected.

    Parameters
    ----------
    precision
        ``"float32"`` for full precision. ``"tf32"`` allows a backend to round the operands to the
        11 binary digits of TF32; sums are in ``float32``. CuPy does so on GPUs of compute
        capability 8.0 or higher, and JAX on GPUs; NumPy has no TF32 and computes in full precision.
        ``"default"``, the initial one, is what the library of the backend does by itself: TF32 for
        JAX on a GPU and for CuPy with the environment variable ``CUPY_TF32=1``, otherwise full
        precision.

    Yields
    ------
    None

    Raises
    ------
    ValueError
        If it is another precision.
    TraceError
        In a function that is being traced: the block would not apply to later calls.

    Examples
    --------
    >>> x = gt.ones((2, 3))
    >>> with gt.mixed_precision.matmul_precision("tf32"):
    ...     y = x @ gt.ones((3, 2))
    >>> y.tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    with Setting(_of_block, _checked_precision(precision, "matmul_precision")):
        yield


def _checked_precision(precision: str, method: str) -> str:
    if precision not in _PRECISIONS:
        same = _SAME.get(precision) if isinstance(precision, str) else None
        raise ValueError(
            f"{method}: the precision must be one of {_PRECISIONS}, got {precision!r}"
            + (f"; that is {same!r} here" if same else "")
        )
    if active_graph.get() is not None:
        raise TraceError(
            f"{method}: a traced function computes with the precision that is set where it is "
            "called; set it there, around the call"
        )
    return precision
