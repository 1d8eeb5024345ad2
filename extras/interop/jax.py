"""Functions and models of gradtape in JAX, and of JAX in gradtape.

Requires JAX: ``pip install "gradtape[jax]"``. It is imported at the first use.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .. import saving
from ..core.extend import Module
from ..public import publish
from .trees import imported

__all__ = ["from_jax", "load", "to_jax"]


def to_jax(fn: Any) -> Any:
    """Return a function or model of gradtape for use in JAX programs.

    It works in ``jax.jit``, ``jax.grad`` and ``jax.vmap``. Gradients of every order are gradtape's,
    also its custom gradients. The function is traced once for each signature. JAX then calls back
    to the host; inside ``gradtape.backend("jax")``, JAX traces the program and compiles it.

    Parameters
    ----------
    fn
        A function of gradtape's tensors, or a :class:`gradtape.Module`. Arrays may be in nested
        lists, tuples and dicts, in arguments and results; all else is passed unchanged.

    Returns
    -------
    callable
        A function of JAX's arrays.
    params : dict
        For a module only: its trainable variables by path, as arrays of JAX.
    state : dict
        For a module only: its other variables. The function is then
        ``apply(params, state, *args, training=False) -> (result, state)``.

    Raises
    ------
    BackendUnavailable
        If JAX is not installed.
    TypeError
        When called, if the function assigns variables, draws random numbers or reads trainable
        variables, all of which a module may do. If an array has a dtype that gradtape lacks, such
        as ``bfloat16``. If the module has 64-bit floats, which JAX does not keep without
        ``jax_enable_x64``.
    ValueError
        If the module has no weights yet. When called, if values do not fit the variables.
    TraceError
        When called, if the function needs values while it is traced.

    Notes
    -----
    JAX refuses forward mode (``jax.jvp``, ``jax.hessian``) as for every function with a
    ``custom_vjp``: use ``jax.jacrev(jax.jacrev(f))``. In ``jax.vmap`` each example is a call of the
    host. No gradient passes through the new state. Results have 32 bits unless JAX allows 64.
    Gradients of complex numbers follow JAX's convention.

    Examples
    --------
    >>> import jax
    >>> cube = gt.interop.jax.to_jax(lambda x: x**3)
    >>> jax.jit(jax.grad(cube))(2.0 * jax.numpy.ones(())).item()
    12.0
    """
    imported("jax")
    from .in_jax import jax_function, jax_model

    if isinstance(fn, Module):
        return jax_model(fn)
    if not callable(fn):
        raise TypeError(f"to_jax: takes a function or a gradtape.Module, got {fn!r}")
    return jax_function(fn)


def from_jax(fn: Callable[..., Any], *, results: Any = None) -> Callable[..., Any]:
    """Return a function of JAX for use in gradtape programs.

    Tapes record the call and differentiate it at any order, by JAX's rules. Functions made with
    :func:`gradtape.function` call JAX in each run; on the backend ``"jax"`` it is compiled with
    the rest of the program.

    Parameters
    ----------
    fn
        A pure function of JAX's arrays, compiled or not. Arrays may be in nested lists, tuples and
        dicts, in arguments and results; all else is passed unchanged.
    results
        A :class:`gradtape.TensorSpec` for each array of the result, in its structure. By default,
        traces find out by ``jax.eval_shape``.

    Returns
    -------
    callable
        A function of gradtape's tensors.

    Raises
    ------
    BackendUnavailable
        If JAX is not installed.
    TypeError
        When called, for tensors on a backend that JAX cannot share.
    NotImplementedError
        In :func:`gradtape.vmap`.

    Notes
    -----
    If an argument has 64 bits, integers included, the function runs with ``jax_enable_x64``.

    Examples
    --------
    >>> import jax
    >>> softplus = gt.interop.jax.from_jax(jax.nn.softplus)
    >>> gt.grad(softplus)(gt.constant(0.0)).item()
    0.5
    """
    imported("jax")
    from .of_jax import gradtape_function

    if not callable(fn):
        raise TypeError(f"from_jax: takes a function, got {fn!r}")
    return gradtape_function(fn, results)


def load(path: str | os.PathLike[str], **options: Any) -> Any:
    """Load a file of :func:`gradtape.save` as a function for JAX, with its parameters and state.

    Parameters
    ----------
    path
        The file.
    options
        As for :func:`gradtape.load`, which reads it just as safely.

    Returns
    -------
    apply : callable
        ``apply(params, state, *args, training=False) -> (result, state)``.
    params, state : dict
        The trainable variables and the others, by path; see :func:`to_jax`.

    Raises
    ------
    BackendUnavailable
        If JAX is not installed.
    LoadError
        If the file cannot be read; see :func:`gradtape.load`.

    Examples
    --------
    >>> gt.save(gt.layers.Sequential([gt.Input((3,)), gt.layers.Dense(2)]), "model.h5")
    >>> apply, params, state = gt.interop.jax.load("model.h5")
    >>> sorted(params), state
    (['layers/0/bias', 'layers/0/kernel'], {})
    """
    imported("jax")
    return to_jax(saving.load(path, **options))


publish(__name__)
