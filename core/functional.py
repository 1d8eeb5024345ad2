"""Derivatives of functions: what tapes and accumulators compute, as functions of functions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from .convert import as_tensor
from .dtypes import is_differentiable
from .errors import TraceError
from .forward import ForwardAccumulator
from .jacobian import beside, pull_rows
from .table import F, ops
from .tape import GradientTape
from .tensor import Tensor
from .tree import flatten as leaves_of
from .tree import pack_like
from .variable import Variable
from .vmap import vmap

__all__ = [
    "flatten",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
]

Function = Callable[..., Any]
ArgNums = int | str | Sequence[int | str]


class _Call:
    """A call of a function, some of whose arguments are differentiated.

    Attributes
    ----------
    chosen
        The differentiated arguments, as the caller gave them: one, or a tuple.
    sources
        Their leaves, as tensors of their own identity (or the variables that they are).
    """

    def __init__(self, name: str, argnums: ArgNums, args: Any, kwargs: Any) -> None:
        self.args, self.kwargs = list(args), dict(kwargs)
        single = isinstance(argnums, (int, str))
        keys: list[Any] = [argnums] if isinstance(argnums, (int, str)) else list(argnums)
        for key in keys:
            if isinstance(key, str) and key not in self.kwargs:
                raise TypeError(f"{name}: argnums names {key!r}, which was not passed by keyword")
            if not isinstance(key, str) and not -len(args) <= key < len(args):
                raise TypeError(
                    f"{name}: argnums is {argnums}, but there are {len(args)} positional arguments"
                )
        if not keys:
            raise ValueError(f"{name}: argnums is empty")
        self.sources: list[Any] = []
        found = []
        for key in keys:
            container = self.kwargs if isinstance(key, str) else self.args
            tree = container[key]
            leaves = [_source(leaf, name, key) for leaf in leaves_of(tree)]
            self.sources += leaves
            container[key] = pack_like(tree, list(leaves))
            found.append(tree)
        self.chosen: Any = found[0] if single else tuple(found)

    def run(self, fn: Function, has_aux: bool = False) -> tuple[Any, Any]:
        """Return the function's result, and what it returns besides."""
        result = fn(*self.args, **self.kwargs)
        if not has_aux:
            return result, None
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError("with has_aux, the function must return a pair (result, auxiliary)")
        return result

    def pack(self, leaves: Sequence[Any]) -> Any:
        """Return one result per source in the structure of the arguments."""
        return pack_like(self.chosen, list(leaves))


def _source(leaf: Any, name: str, key: Any) -> Any:
    if isinstance(leaf, Variable):
        tensor: Any = leaf
    else:
        tensor = as_tensor(leaf)
        if is_differentiable(tensor.dtype):
            # a tensor of its own: what the function reaches by another way is a constant
            tensor = ops["identity"](tensor)
    if not is_differentiable(tensor.dtype):
        raise TypeError(
            f"{name}: argument {key!r} holds {tensor.dtype} values, which have no derivative; "
            "pass floating ones, or choose other arguments with argnums"
        )
    return tensor


def _scalar(value: Any, name: str) -> Tensor:
    result = value.value if isinstance(value, Variable) else value
    if not isinstance(result, Tensor):
        raise TypeError(f"{name}: the function must return a tensor, got {type(value).__name__}")
    if result.shape not in ((), None):
        raise TypeError(
            f"{name}: the function must return a scalar, got shape {result.shape}; use jacobian, "
            "or reduce the result with sum or mean"
        )
    return result


def _tape(persistent: bool = False) -> GradientTape:
    return GradientTape(persistent, watch_accessed_variables=False)


# -- gradients -------------------------------------------------------------------------------------


def value_and_grad(fn: Function, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """Return a function that computes ``fn`` and its gradient.

    Parameters
    ----------
    fn
        A function that returns a scalar tensor.
    argnums
        The arguments to differentiate: a position, a keyword's name, or a sequence of these. An
        argument may be any nested container of tensors, variables, arrays and Python floats.
    has_aux
        Whether ``fn`` returns a pair, the scalar and something to hand on.

    Returns
    -------
    A function of the arguments of ``fn`` that returns ``(value, gradient)``, or
    ``((value, auxiliary), gradient)``. The gradient has the structure of the argument; it is a
    tuple of those if ``argnums`` is a sequence. What has no influence has zeros.

    Raises
    ------
    TypeError
        When called, if the result is not a scalar, or an argument is not floating.

    Examples
    --------
    >>> value, slope = gt.value_and_grad(lambda x: gt.sum(x * x))(gt.constant([1.0, 2.0]))
    >>> slope.tolist()
    [2.0, 4.0]
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call("grad", argnums, args, kwargs)
        with _tape() as tape:
            tape.watch(call.sources)
            result, aux = call.run(fn, has_aux)
        grads = tape.gradient(_scalar(result, "grad"), call.sources, unconnected_gradients="zero")
        return ((result, aux) if has_aux else result), call.pack(grads)

    return wrapper


def grad(fn: Function, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """Return a function that computes the gradient of ``fn``; see :func:`value_and_grad`.

    With ``has_aux`` it returns ``(gradient, auxiliary)``.

    Examples
    --------
    >>> gt.grad(gt.grad(lambda x: x**3))(2.0).item()
    12.0
    """
    both = value_and_grad(fn, argnums, has_aux)

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def vjp(fn: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return ``fn(*primals)`` and a function that sends gradients of the result back.

    Parameters
    ----------
    fn
        A function of ``primals`` that returns tensors in any nested containers.
    primals
        Its arguments, all of them differentiated.
    has_aux
        Whether ``fn`` returns a pair, the result and something to hand on.

    Returns
    -------
    ``(result, pull)``, or ``(result, pull, auxiliary)``. ``pull(cotangents)`` takes upstream
    gradients in the structure of the result and returns a tuple, a gradient per argument. It may
    be called any number of times, and inside ``vmap``.
    """
    call = _Call("vjp", range(len(primals)), primals, {})
    with _tape(persistent=True) as tape:
        tape.watch(call.sources)
        result, aux = call.run(fn, has_aux)
    targets = leaves_of(result)

    def pull(cotangents: Any) -> Any:
        grads = tape.gradient(
            targets,
            call.sources,
            output_gradients=leaves_of(cotangents),
            unconnected_gradients="zero",
        )
        return call.pack(grads)

    return (result, pull, aux) if has_aux else (result, pull)


# -- forward mode ----------------------------------------------------------------------------------


def _arguments(primals: Any, tangents: Any, name: str) -> tuple[Any, Any]:
    """Return primals and tangents as tuples of arguments; a bare one is the only argument."""
    if not isinstance(primals, (tuple, list)):
        primals, tangents = (primals,), (tangents,)
    if not isinstance(tangents, (tuple, list)) or len(tangents) != len(primals):
        raise TypeError(f"{name}: there must be a tangent for each of {len(primals)} arguments")
    return tuple(primals), tuple(tangents)


def jvp(fn: Function, primals: Any, tangents: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return ``fn(*primals)`` and its derivative in the direction ``tangents``.

    Parameters
    ----------
    fn
        A function that returns tensors in any nested containers.
    primals
        Its arguments: a tuple, or a single tensor.
    tangents
        The direction: a tensor for each leaf of ``primals``, in the same structure.
    has_aux
        Whether ``fn`` returns a pair, the result and something to hand on.

    Returns
    -------
    ``(result, tangent)``, or ``(result, tangent, auxiliary)``; zeros where there is no influence.

    Examples
    --------
    >>> y, slope = gt.jvp(gt.sin, gt.constant(0.0), gt.constant(2.0))
    >>> slope.item()
    2.0
    """
    primals, tangents = _arguments(primals, tangents, "jvp")
    call = _Call("jvp", range(len(primals)), primals, {})
    given = leaves_of(tangents)
    if len(given) != len(call.sources):
        raise ValueError(
            f"jvp: the arguments hold {len(call.sources)} tensors, there are {len(given)} tangents"
        )
    result, tangent, aux = _push(fn, call, call.sources, given, has_aux)
    return (result, tangent, aux) if has_aux else (result, tangent)


def _push(
    fn: Function, call: _Call, sources: list[Any], tangents: list[Any], has_aux: bool = False
) -> tuple[Any, Any, Any]:
    with ForwardAccumulator(sources, tangents) as accumulator:
        result, aux = call.run(fn, has_aux)
    leaves = [leaf.value if isinstance(leaf, Variable) else leaf for leaf in leaves_of(result)]
    found = [
        accumulator.jvp(leaf, unconnected_gradients="zero") if isinstance(leaf, Tensor) else None
        for leaf in leaves
    ]
    return result, pack_like(result, found), aux


def linearize(fn: Function, *primals: Any) -> tuple[Any, Function]:
    """Return ``fn(*primals)`` and its derivative there, a linear function of tangents.

    ``fn`` runs once; each call of the derivative costs about a backward pass.

    Parameters
    ----------
    fn
        A function that returns tensors in any nested containers.
    primals
        Its arguments, all of them differentiated.

    Returns
    -------
    ``(result, push)``: ``push(*tangents)`` takes a tangent per argument and returns tangents in the
    structure of the result. It may be called any number of times, and inside ``vmap``.
    """
    call = _Call("linearize", range(len(primals)), primals, {})
    with _tape() as tape:
        tape.watch(call.sources)
        result, _ = call.run(fn)
    targets = leaves_of(result)
    # the backward pass is linear in what comes from above; its own backward pass is the derivative
    seeds = [Tensor(F.zeros_like(y.array)) for y in targets]
    with _tape(persistent=True) as transpose:
        transpose.watch(seeds)
        grads = tape.gradient(targets, call.sources, output_gradients=seeds)
    connected = [i for i, g in enumerate(grads) if g is not None]

    def push(*tangents: Any) -> Any:
        given = leaves_of(tangents)
        if len(given) != len(grads):
            raise ValueError(f"linearize: there must be {len(grads)} tangents, got {len(given)}")
        found = transpose.gradient(
            [grads[i] for i in connected],
            seeds,
            output_gradients=[given[i] for i in connected],
            unconnected_gradients="zero",
        )
        return pack_like(result, found)

    return result, push


# -- Jacobians -------------------------------------------------------------------------------------


def jacrev(
    fn: Function, argnums: ArgNums = 0, has_aux: bool = False, chunk_size: int | None = None
) -> Function:
    """Return a function that computes the Jacobian of ``fn`` in reverse mode.

    Best for fewer outputs than inputs: all rows go back together, in one backward pass.

    Parameters
    ----------
    fn
        A function that returns tensors in any nested containers.
    argnums
        As for :func:`value_and_grad`.
    has_aux
        Whether ``fn`` returns a pair, the result and something to hand on.
    chunk_size
        How many rows go back at once; memory is proportional to it. By default as many as take
        1 GiB, by an estimate.

    Returns
    -------
    A function that returns, in the structure of the result, the structure of the arguments: tensors
    of shape ``output.shape + input.shape``; with ``has_aux``, a pair of that and the auxiliary.

    Examples
    --------
    >>> gt.jacrev(lambda x: x * x)(gt.constant([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call("jacrev", argnums, args, kwargs)
        with _tape(persistent=True) as tape:
            tape.watch(call.sources)
            result, aux = call.run(fn, has_aux)
        blocks = [
            call.pack(
                tape.jacobian(
                    leaf,
                    call.sources,
                    unconnected_gradients="zero",
                    parallel_iterations=chunk_size,
                )
            )
            for leaf in leaves_of(result)
        ]
        packed = pack_like(result, blocks)
        return (packed, aux) if has_aux else packed

    return wrapper


def jacfwd(fn: Function, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """Return a function that computes the Jacobian of ``fn`` in forward mode.

    Best for fewer inputs than outputs: ``fn`` runs once, with all columns' tangents beside it.
    Parameters and results are those of :func:`jacrev`.
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call("jacfwd", argnums, args, kwargs)
        columns: list[list[Any]] = []
        result = aux = None
        for source in call.sources:
            shape = _sizes(source, "jacfwd")
            basis = np.eye(prod(shape)).reshape(-1, *shape)
            tangents = Tensor(beside(basis, _handle(source)))
            kept: list[Any] = []

            def column(tangent: Any, source: Any = source, kept: list[Any] = kept) -> list[Any]:
                found = _push(fn, call, [source], [tangent], has_aux)
                kept[:] = [found[0], found[2]]
                return leaves_of(found[1])

            stacked = vmap(column, out_axes=0)(tangents)
            columns.append([_columns_last(y, shape) for y in stacked])
            result, aux = kept
        blocks = [call.pack(row) for row in zip(*columns, strict=True)]
        packed = pack_like(result, blocks)
        return (packed, aux) if has_aux else packed

    return wrapper


def _columns_last(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return ``(n, *output)`` as ``(*output, *shape)``, where ``shape`` has n elements."""
    if x.shape is None:
        raise TraceError("jacfwd: the rank of a result is unknown in this trace")
    moved = ops["moveaxis"](x, source=(0,), destination=(-1,))
    if len(shape) == 1:
        return moved
    sizes = [-1 if n is None else n for n in x.shape[1:]]
    result: Tensor = ops["reshape"](moved, shape=(*sizes, *shape))
    return result


def _handle(source: Any) -> Tensor:
    return source.handle() if isinstance(source, Variable) else source


def _sizes(source: Any, name: str) -> tuple[int, ...]:
    shape = source.shape
    if shape is None or None in shape:
        raise TraceError(f"{name}: the shape of an argument is unknown in this trace: {shape}")
    return tuple(shape)


def jacobian(
    fn: Function,
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    structure: str | None = None,
    check: bool = False,
) -> Function:
    """Return a function that computes the Jacobian of ``fn``.

    Parameters
    ----------
    fn, argnums, has_aux
        As for :func:`jacrev`, which this is unless ``structure`` is given.
    structure
        What is known of the Jacobian of one argument and one result with as many elements:
        ``"diagonal"``, or ``"banded(k)"`` with ``k`` diagonals on either side of the main one
        (elements in C order). Then 1 or ``2 * k + 1`` rows go back in place of one per element.
    check
        Make sure of the structure, by a product with a random vector.

    Returns
    -------
    A function that returns what :func:`jacrev` does. With ``"diagonal"`` it returns the diagonal,
    in the shape of the result; with ``"banded(k)"`` a matrix of shape ``(2 * k + 1, n)`` with
    ``J[i, j]`` at ``[k + i - j, j]``: the form of ``scipy.linalg.solve_banded``, zeros at the ends.

    Raises
    ------
    ValueError
        If ``structure`` is unknown; when called, if result and argument differ in size, or
        ``check`` finds elements elsewhere.
    """
    if structure is None:
        return jacrev(fn, argnums, has_aux)
    match = re.fullmatch(r"diagonal|banded\((\d+)\)", structure.replace(" ", ""))
    if match is None:
        raise ValueError(
            "jacobian: structure must be 'diagonal' or 'banded(k)' with a number k, got "
            f"{structure!r}"
        )
    width = int(match[1] or 0)

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call("jacobian", argnums, args, kwargs)
        if len(call.sources) != 1:
            raise ValueError(f"jacobian: structure is for one tensor, got {len(call.sources)}")
        (source,) = call.sources
        with _tape(persistent=True) as tape:
            tape.watch(source)
            result, aux = call.run(fn, has_aux)
        n = prod(_sizes(source, "jacobian"))
        if not isinstance(result, Tensor) or prod(_sizes(result, "jacobian")) != n:
            raise ValueError(
                f"jacobian: with structure={structure!r} the result must have as many elements as "
                f"the argument, {n}; got {getattr(result, 'shape', result)}"
            )
        found = _banded(tape, result, source, n, width)
        if check:
            _check_structure(tape, result, source, found, width, structure)
        if match[1] is None:
            found = ops["reshape"](found, shape=result.shape)
        return (found, aux) if has_aux else found

    return wrapper


def _banded(tape: GradientTape, target: Tensor, source: Any, n: int, width: int) -> Tensor:
    """Return a banded Jacobian's diagonals: rows ``2 * width + 1`` apart do not meet."""
    count = 2 * width + 1
    seeds = np.zeros((count, n))
    seeds[np.arange(n) % count, np.arange(n)] = 1
    rows = beside(seeds.reshape(count, *(target.shape or ())), target)
    (found,) = pull_rows(tape, target, rows, [source.id], keep=True)
    if found is None:
        return Tensor(beside(np.zeros((count, n)), _handle(source)))
    place = np.arange(n) + np.arange(-width, width + 1)[:, None]  # the row i at [width + i - j, j]
    picked = ops["take_along_axis"](
        ops["reshape"](found, shape=(count, n)),
        Tensor(beside(place % count, target, np.int64)),
        axis=0,
    )
    inside = Tensor(beside((place >= 0) & (place < n), target, np.bool_))
    result: Tensor = ops["where"](inside, picked, 0.0)
    return result


def _check_structure(
    tape: GradientTape, target: Tensor, source: Any, found: Tensor, width: int, structure: str
) -> None:
    n = found.shape[1] if found.shape else 0
    probe = np.random.default_rng(0).standard_normal(n)
    seed = Tensor(beside(probe.reshape(target.shape or ()), target))
    product = tape.gradient(target, source, output_gradients=seed, unconnected_gradients="zero")
    got = np.asarray(product.numpy()).reshape(-1)
    place = np.arange(n) + np.arange(-width, width + 1)[:, None]
    inside = (place >= 0) & (place < n)
    want = np.where(inside, np.asarray(found.numpy()) * probe[place % max(n, 1)], 0).sum(axis=0)
    scale = max(float(np.abs(got).max(initial=0)), 1e-30)
    if np.abs(got - want).max(initial=0) > float(np.sqrt(np.finfo(got.dtype).eps)) * scale:
        raise ValueError(
            f"jacobian: the Jacobian is not {structure}: it has elements outside; use a wider "
            "band, or jacobian without structure"
        )


# -- second derivatives ----------------------------------------------------------------------------


def hessian(fn: Function, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """Return a function that computes the Hessian of ``fn``, which returns a scalar.

    One gradient is recorded, and all its rows go back together.

    Parameters
    ----------
    fn, argnums, has_aux
        As for :func:`value_and_grad`.

    Returns
    -------
    A function that returns the second derivatives: in the structure of the arguments the structure
    of the arguments again, tensors of shape ``x.shape + y.shape``.

    Examples
    --------
    >>> gt.hessian(lambda x: gt.sum(x**3))(gt.constant([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacrev(grad(fn, argnums, has_aux), argnums, has_aux)


def hvp(fn: Function, primals: Any, tangents: Any) -> Any:
    """Return the product of the Hessian of ``fn`` with a vector, at the cost of a few gradients.

    Forward over reverse mode: the derivative of the gradient in the direction ``tangents``.

    Parameters
    ----------
    fn
        A function that returns a scalar tensor.
    primals, tangents
        Its arguments and the vector, as for :func:`jvp`.

    Returns
    -------
    The product, in the structure of ``primals``.
    """
    single = not isinstance(primals, (tuple, list))
    primals, tangents = _arguments(primals, tangents, "hvp")
    slope = grad(fn, tuple(range(len(primals))))
    product = jvp(slope, primals, tangents)[1]
    return product[0] if single else product


# -- vectors ---------------------------------------------------------------------------------------


def flatten(tree: Any) -> tuple[Tensor, Callable[[Any], Any]]:
    """Return all tensors of a nested container as one vector, and the way back.

    For optimizers that want one vector, SciPy's for instance.

    Parameters
    ----------
    tree
        Tensors, variables, arrays or numbers, in any nested containers.

    Returns
    -------
    vector
        All elements in order, of the dtype to which the leaves promote.
    unflatten
        A function that cuts such a vector (or anything that converts to one) into tensors of the
        leaves' shapes and dtypes, in the structure of ``tree``. Gradients pass through both.

    Raises
    ------
    ValueError
        By ``unflatten``, if the vector has another number of elements.

    Examples
    --------
    >>> vector, unflatten = gt.flatten({"a": gt.ones((2, 2)), "b": gt.zeros(3)})
    >>> vector.shape
    (7,)
    >>> unflatten(vector * 2.0)["a"].tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    leaves = [as_tensor(leaf) for leaf in leaves_of(tree)]
    shapes = [_sizes(leaf, "flatten") for leaf in leaves]
    dtypes = [leaf.dtype for leaf in leaves]
    ends = [int(n) for n in np.cumsum([prod(shape) for shape in shapes])]
    total = ends[-1] if ends else 0
    if leaves:
        flat = [ops["reshape"](leaf, shape=(-1,)) for leaf in leaves]
        vector = flat[0] if len(flat) == 1 else ops["concatenate"](*flat, axis=0)
    else:
        vector = as_tensor(np.zeros(0, np.float32))

    def unflatten(values: Any) -> Any:
        values = as_tensor(values)
        if values.shape not in ((total,), (None,), None):
            raise ValueError(
                f"unflatten: the vector must have shape ({total},), got shape {values.shape}"
            )
        parts = ops["split"](values, sections=tuple(ends[:-1]), axis=0) if leaves else []
        found = []
        for part, shape, dtype in zip(parts, shapes, dtypes, strict=True):
            part = ops["reshape"](part, shape=shape)
            found.append(part if part.dtype == dtype else part.astype(dtype))
        return pack_like(tree, found)

    return vector, unflatten
