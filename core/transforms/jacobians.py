"""Jacobians and Hessians of functions, in reverse and forward mode, dense and structured."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..base.sizes import has_unknown_sizes, known_size, sizes_differ
from ..base.table import functions, ops
from ..base.tree import flatten, pack_like
from ..errors import TraceError
from ..ops.dispatch import is_transformed
from ..tape.jacobian import identity_rows, pull_rows, rows_on_device_of
from ..tape.missing_gradients import check_paths, warn_of_breaks
from ..tape.tape import GradientTape
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .calls import (
    ArgNums,
    Call,
    P,
    check_arguments,
    check_mode,
    check_results,
    in_real_pairs,
    sizes_of,
    tape_of,
)
from .functional import grad, push
from .limits import derive
from .vmap import check_function, transform_of, vmap


def jacrev(
    fn: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    *,
    holomorphic: bool = False,
    real: bool = False,
    strict: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of ``fn`` in reverse mode.

    Best for fewer outputs than inputs: one backward pass computes all rows together.

    Parameters
    ----------
    fn
        A function that returns tensors in any nested containers.
    argnums
        As for :func:`value_and_grad`.
    has_aux
        Whether ``fn`` returns a pair: the result and an auxiliary result to pass through.
    chunk_size
        The number of rows per backward pass; memory is proportional to it. By default, as many as
        fit into an estimated 1 GiB.
    holomorphic
        Arguments and results are complex, and ``fn`` is holomorphic, as you promise: return the
        complex derivatives. False by default.
    real
        Return the derivatives of real and imaginary parts with respect to real and imaginary parts:
        a complex result of shape ``s`` counts as a real one of shape ``(*s, 2)``, and so does a
        complex argument. False by default.
    strict
        Raise ``GradientError`` if a path is broken, as for :func:`value_and_grad`.

    Returns
    -------
    callable
        A function that returns the structure of the result with the structure of the arguments at
        each leaf: tensors of shape ``output.shape + input.shape``. With ``has_aux``, a pair of
        these and the auxiliary result.

    Raises
    ------
    TypeError
        When called, if an argument is not floating; if one is complex without ``holomorphic`` or
        ``real``; if a result is complex but not an argument; with ``holomorphic``, if an argument
        or a result is real.
    ValueError
        If both ``holomorphic`` and ``real`` are true.

    Notes
    -----
    Gradients are conjugates of derivatives, in TensorFlow's convention. With ``holomorphic``, this
    function returns the derivatives themselves, like :func:`jacfwd`.

    Examples
    --------
    >>> gt.jacrev(lambda x: x * x)(gt.constant([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    >>> gt.jacrev(gt.conj, real=True)(gt.constant(1.0 + 2.0j)).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    check_function("jacrev", fn)
    check_mode("jacrev", holomorphic, real)
    if real:
        inside = partial(jacrev, chunk_size=chunk_size, strict=strict)
        return in_real_pairs("jacrev", inside, fn, argnums, has_aux)
    return _reverse("jacrev", fn, argnums, has_aux, holomorphic, strict, chunk_size)


def _reverse(
    name: str,
    fn: Callable[..., Any],
    argnums: ArgNums,
    has_aux: bool,
    holomorphic: bool,
    strict: bool,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes Jacobians by backward passes, with ``name`` in messages."""

    @transform_of(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = Call(name, argnums, args, kwargs)
        check_arguments(name, call.sources, holomorphic)

        def run() -> tuple[Any, list[Any]]:
            with tape_of(persistent=True, strict=strict) as tape:
                tape.watch(call.sources)
                result, aux = call.run(fn, has_aux)
            check_results(name, flatten(result), holomorphic, forward=False)
            warn_of_breaks(tape, flatten(result), call.sources)
            rows = [
                tape.jacobian(
                    leaf,
                    call.sources,
                    unconnected_gradients="zero",
                    parallel_iterations=chunk_size,
                )
                for leaf in flatten(result)
            ]
            return (result, aux), [block for row in rows for block in row]

        (result, aux), blocks = derive(run, strict)
        if holomorphic:
            blocks = [ops["conj"](block) for block in blocks]
        count = len(call.sources)
        rows = [call.pack(blocks[i : i + count]) for i in range(0, len(blocks), count)]
        packed = pack_like(result, rows)
        return (packed, aux) if has_aux else packed

    return wrapper


def jacfwd(
    fn: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    real: bool = False,
    strict: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of ``fn`` in forward mode.

    Best for fewer inputs than outputs: ``fn`` runs once, together with the tangents of all columns.
    Random numbers are drawn once.

    Parameters
    ----------
    fn
        A function that returns tensors in any nested containers.
    argnums
        As for :func:`value_and_grad`.
    has_aux
        Whether ``fn`` returns a pair: the result and an auxiliary result to pass through.
    holomorphic, real
        As for :func:`jacrev`.
    strict
        Raise ``GradientError`` if a path is broken, as for :func:`value_and_grad`.

    Returns
    -------
    callable
        A function with the same results as that of :func:`jacrev`; a result of real arguments may
        be complex.

    Raises
    ------
    TypeError
        When called, if an argument is not floating; if one is complex without ``holomorphic`` or
        ``real``; with ``holomorphic``, if an argument or a result is real.
    ValueError
        If both ``holomorphic`` and ``real`` are true.
    GradientError
        When called, if ``fn`` has a custom gradient that is not linear, and so has no forward mode.

    Examples
    --------
    >>> gt.jacfwd(lambda x: x * x)(gt.constant([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_function("jacfwd", fn)
    check_mode("jacfwd", holomorphic, real)
    if real:
        return in_real_pairs("jacfwd", partial(jacfwd, strict=strict), fn, argnums, has_aux)

    @transform_of(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = Call("jacfwd", argnums, args, kwargs)
        check_arguments("jacfwd", call.sources, holomorphic)
        columns: list[list[Any]] = []
        result = aux = None
        for source in call.sources:
            shape = sizes_of(source, "jacfwd")
            if has_unknown_sizes(shape):
                tangents = identity_rows(_handle(source))
            else:
                basis = np.eye(prod(shape)).reshape(prod(shape), *shape)
                tangents = Tensor(rows_on_device_of(basis, _handle(source)))
            kept: list[Any] = []

            def column(tangent: Any, source: Any = source, kept: list[Any] = kept) -> list[Any]:
                found = push(fn, call, [source], [tangent], has_aux, strict)
                kept[:] = [found[0], found[2]]
                check_results("jacfwd", flatten(found[0]), holomorphic, forward=True)
                return flatten(found[1])

            # the function itself runs once, so there is one draw of random numbers
            stacked = vmap(column, randomness="same")(tangents)
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
    result: Tensor = ops["reshape"](moved, shape=(*x.shape[1:], *shape))
    return result


def _handle(source: Any) -> Tensor:
    return source.handle() if isinstance(source, Variable) else source


def jacobian(
    fn: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    structure: str | None = None,
    check: bool = False,
    holomorphic: bool = False,
    real: bool = False,
    strict: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of ``fn``.

    Parameters
    ----------
    fn, argnums, has_aux
        As for :func:`jacrev`, which is used unless ``structure`` is given.
    structure
        The known structure of a Jacobian of one argument and one result with the same number of
        elements: ``"diagonal"``, or ``"banded(k)"`` with ``k`` diagonals on either side of the main
        one (elements in C order). The backward pass then computes 1 or ``2 * k + 1`` rows instead
        of one per element.
    check
        Verify the structure, by a product with a random vector.
    holomorphic, real
        As for :func:`jacrev`; without a structure.
    strict
        Raise ``GradientError`` if a path is broken, as for :func:`value_and_grad`.

    Returns
    -------
    callable
        A function with the same results as that of :func:`jacrev`. With ``"diagonal"`` it returns
        the diagonal, in the shape of the result; with ``"banded(k)"`` a matrix of shape
        ``(2 * k + 1, n)`` with ``J[i, j]`` at ``[k + i - j, j]`` and zeros at the ends: the form of
        ``scipy.linalg.solve_banded``.

    Raises
    ------
    ValueError
        If ``structure`` is unknown, or combined with ``holomorphic`` or ``real``. When called, if
        result and argument differ in size, or ``check`` finds nonzero elements outside the
        structure.
    TypeError
        When called, if an argument is not floating; as for :func:`jacrev`, for complex numbers.

    References
    ----------
    A. R. Curtis, M. J. D. Powell and J. K. Reid, "On the estimation of sparse Jacobian matrices",
    1974: the rows of a band that share a backward pass.

    Examples
    --------
    >>> square = gt.jacobian(lambda x: x * x, structure="diagonal")
    >>> square(gt.constant([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    check_function("jacobian", fn)
    if structure is None:
        check_mode("jacobian", holomorphic, real)
        if real:
            return in_real_pairs("jacobian", partial(jacrev, strict=strict), fn, argnums, has_aux)
        return _reverse("jacobian", fn, argnums, has_aux, holomorphic, strict)
    if holomorphic or real:
        raise ValueError(
            f"jacobian: structure={structure!r} is for real numbers: leave out holomorphic and "
            "real, or structure"
        )
    if _bands(structure) is None:
        raise ValueError(
            "jacobian: structure must be 'diagonal' or 'banded(k)' with a number k, got "
            f"{structure!r}"
        )

    @transform_of(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = Call("jacobian", argnums, args, kwargs)
        if len(call.sources) != 1:
            raise ValueError(
                f"jacobian: structure requires an argument with one tensor, got "
                f"{len(call.sources)} tensors"
            )
        (source,) = call.sources
        check_arguments("jacobian", [source], False)

        def run() -> tuple[Any, list[Any]]:
            with tape_of(persistent=True, strict=strict) as tape:
                tape.watch(source)
                result, aux = call.run(fn, has_aux)
            found = _of_structure(tape, result, source, structure, check)
            return (result, aux), [found]

        (_, aux), (found,) = derive(run, strict)
        return (found, aux) if has_aux else found

    return wrapper


def _bands(structure: str) -> re.Match[str] | None:
    return re.fullmatch(r"diagonal|banded\((\d+)\)", structure.replace(" ", ""))


def _of_structure(
    tape: GradientTape, result: Any, source: Any, structure: str, check: bool
) -> Tensor:
    """Return the diagonals of a Jacobian whose structure is known."""
    check_results("jacobian", flatten(result), False, forward=False)
    check_paths(tape, flatten(result), [source])
    warn_of_breaks(tape, flatten(result), [source])
    if check and (is_transformed(source.array) or is_transformed(as_tensor(result).array)):
        raise TraceError(
            "jacobian: check=True needs values, and a trace or vmap has none; check outside of it"
        )
    n = prod(sizes_of(source, "jacobian"))
    if not isinstance(result, Tensor) or sizes_differ(prod(sizes_of(result, "jacobian")), n):
        raise ValueError(
            f"jacobian: with structure={structure!r} the result must have as many elements as "
            f"the argument, {n}; got {getattr(result, 'shape', result)}"
        )
    match = _bands(structure)
    assert match is not None
    width = int(match[1] or 0)
    found = _banded(tape, result, source, n, width)
    if check:
        _check_structure(tape, result, source, found, width, structure)
    if match[1] is not None:
        return found
    diagonal: Tensor = ops["reshape"](found, shape=result.shape)
    return diagonal


def _banded(tape: GradientTape, target: Tensor, source: Any, n: Any, width: int) -> Tensor:
    """Return a banded Jacobian's diagonals: rows ``2 * width + 1`` apart do not overlap."""
    count = 2 * width + 1
    # a NumPy array, or a tensor if the size is known only in a run: the code below works for both
    columns: Any = np.arange(n) if known_size(n) else functions["arange"](n)
    seeds = columns % count == np.arange(count)[:, None]
    rows = _on_device_of(seeds.reshape(count, *(target.shape or ())), target)
    (found,) = pull_rows(tape, target, rows, [source.id], keep=True)
    if found is None:
        return Tensor(_on_device_of(0 * seeds, _handle(source)))
    place = columns + np.arange(-width, width + 1)[:, None]  # row i is at [width + i - j, j]
    picked = ops["take_along_axis"](
        ops["reshape"](found, shape=(count, n)),
        Tensor(_on_device_of(place % count, target, np.int64)),
        axis=0,
    )
    inside = Tensor(_on_device_of((place >= 0) & (place < n), target, np.bool_))
    result: Tensor = ops["where"](inside, picked, 0.0)
    return result


def _on_device_of(values: Any, target: Tensor, dtype: Any = None) -> Any:
    """Return a NumPy array or a traced tensor as an array on the target's device."""
    if isinstance(values, Tensor):
        return values.astype(dtype or target.dtype).array
    return rows_on_device_of(values, target, dtype)


def _check_structure(
    tape: GradientTape, target: Tensor, source: Any, found: Tensor, width: int, structure: str
) -> None:
    n = found.shape[1] if found.shape else 0
    probe = np.random.default_rng(0).standard_normal(n)
    seed = Tensor(rows_on_device_of(probe.reshape(target.shape or ()), target))
    product = tape.gradient(target, source, output_gradients=seed, unconnected_gradients="zero")
    got = np.asarray(product.numpy()).reshape(-1)
    place = np.arange(n) + np.arange(-width, width + 1)[:, None]
    inside = (place >= 0) & (place < n)
    terms = np.where(inside, np.asarray(found.numpy()) * probe[place % max(n, 1)], 0)
    # the rounding error of each sum; a comparison with nan fails
    allowed = 1e3 * float(np.finfo(got.dtype).eps) * np.abs(terms).sum(axis=0)
    if not (np.abs(got - terms.sum(axis=0)) <= allowed).all():
        raise ValueError(
            f"jacobian: the Jacobian is not {structure}: it has other nonzero elements; use a "
            "wider band, or jacobian without structure"
        )


def hessian(
    fn: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    real: bool = False,
    strict: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Hessian of ``fn``, which returns a scalar.

    It records one gradient, and computes all rows in one backward pass.

    Parameters
    ----------
    fn, argnums, has_aux, strict
        As for :func:`value_and_grad`; with ``holomorphic``, ``fn`` returns a complex scalar.
    holomorphic, real
        As for :func:`jacrev`. With ``real``, a real function of a complex number has a real Hessian
        of shape ``(2, 2)``.

    Returns
    -------
    callable
        A function that returns the second derivatives: the structure of the arguments with the
        structure of the arguments at each leaf, tensors of shape ``x.shape + y.shape``.

    Raises
    ------
    TypeError
        When called, if the result is not a scalar, or an argument is not floating; if one is
        complex without ``holomorphic`` or ``real``.
    ValueError
        If both ``holomorphic`` and ``real`` are true.

    Examples
    --------
    >>> gt.hessian(lambda x: gt.sum(x**3))(gt.constant([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    >>> gt.hessian(lambda z: gt.real(z * z), real=True)(gt.constant(1.0 + 2.0j)).tolist()
    [[2.0, 0.0], [0.0, -2.0]]
    """
    check_function("hessian", fn)
    check_mode("hessian", holomorphic, real)
    if real:
        return in_real_pairs("hessian", partial(hessian, strict=strict), fn, argnums, has_aux, True)
    if holomorphic:
        slope = _reverse("hessian", fn, argnums, has_aux, holomorphic, strict)
    else:
        slope = grad(fn, argnums, has_aux, strict=strict)
    return _reverse("hessian", slope, argnums, has_aux, holomorphic, strict)
