"""Functions and models of gradtape in PyTorch, and of PyTorch in gradtape.

Requires PyTorch: ``pip install "gradtape[torch]"``. It is imported at the first use.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .. import saving
from ..core.extend import Module
from ..public import publish
from .trees import imported

__all__ = ["from_torch", "load", "to_torch"]


def to_torch(fn: Any) -> Any:
    """Return a function or model of gradtape for use in PyTorch programs.

    PyTorch's autograd differentiates through it at any order, by gradtape's rules and its custom
    gradients. On the CPU, arguments are not copied, and neither are results that nothing in
    gradtape holds.

    Parameters
    ----------
    fn
        A function of gradtape's tensors, also one made with :func:`gradtape.function`, or a
        :class:`gradtape.Module`. Tensors may be in nested lists, tuples and dicts, in arguments and
        results; all else is passed unchanged.

    Returns
    -------
    callable
        A function of ``torch.Tensor``. For a :class:`gradtape.Module`, a ``torch.nn.Module`` whose
        parameters are copies of the trainable variables, and whose buffers are copies of the
        others. ``update_model()`` assigns their values to the gradtape model.

    Raises
    ------
    BackendUnavailable
        If PyTorch is not installed.
    TypeError
        When called, if a tensor has a dtype, layout or device that gradtape lacks (such as
        ``bfloat16``), or if a function reads trainable variables in a call that PyTorch records.
        If it uses a tensor of PyTorch that requires gradients and is not an argument.
    ValueError
        If the model has no weights yet. When called, if a part of the module is in another mode.
    NotImplementedError
        In ``torch.vmap`` over a gradient, and in ``torch.vmap`` over a model's parameters. For
        hooks of the parts of a module, which PyTorch does not call one by one.
    RuntimeError
        If ``torch.utils.checkpoint`` calls a model again that has assigned variables, such as
        moving averages.

    Notes
    -----
    PyTorch has no forward mode for it. ``torch.compile`` calls it as it is, between two compiled
    parts. ``train()`` and ``eval()`` decide ``training`` of the layers. Buffers change in place.

    If PyTorch changes an argument in place before the backward pass, that raises PyTorch's usual
    error. To a function that keeps an argument, pass ``x.clone()``: otherwise it keeps memory that
    PyTorch may change. In calls that PyTorch does not record, a kept tensor is copied, and a
    variable is an error.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> cube = gt.interop.torch.to_torch(lambda x: x**3)  # doctest: +SKIP
    >>> x = torch.tensor(2.0, requires_grad=True)  # doctest: +SKIP
    >>> cube(x).backward()  # doctest: +SKIP
    >>> x.grad  # doctest: +SKIP
    tensor(12.)
    """
    imported("torch")
    from .in_torch import torch_function
    from .models_in_torch import TorchModule

    if isinstance(fn, Module):
        return TorchModule(fn)
    if not callable(fn):
        raise TypeError(f"to_torch: takes a function or a gradtape.Module, got {fn!r}")
    return torch_function(fn)


def from_torch(fn: Any, *, results: Any = None) -> Any:
    """Return a function or module of PyTorch for use in gradtape programs.

    Tapes record the call and differentiate it at any order, by PyTorch's autograd. In functions
    made with :func:`gradtape.function`, each run calls PyTorch.

    Parameters
    ----------
    fn
        A function of ``torch.Tensor``, or a ``torch.nn.Module``. Tensors may be in nested lists,
        tuples and dicts, in arguments and results; all else is passed unchanged.
    results
        A :class:`gradtape.TensorSpec` for each tensor of the result, in its structure. By default,
        traces find out by running the function on PyTorch's fake tensors.

    Returns
    -------
    callable
        A function of gradtape's tensors. For a ``torch.nn.Module``, a :class:`gradtape.Module`
        whose variables are copies of the parameters and buffers. ``update_module()`` copies their
        values to the PyTorch module.

    Raises
    ------
    BackendUnavailable
        If PyTorch is not installed.
    TypeError
        When called, for tensors on a device that PyTorch cannot share. In a backward pass, if the
        function uses a tensor that requires gradients and is not an argument.
    RuntimeError
        When called, if the function writes to an argument in place.
    NotImplementedError
        In :func:`gradtape.vmap`.

    Notes
    -----
    A function of a trace draws the same random numbers in its backward pass as before, from
    PyTorch's generator on the CPU. In :func:`gradtape.recompute_grad` the second call draws others:
    functions there must not be random.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> erfinv = gt.interop.torch.from_torch(torch.erfinv)  # doctest: +SKIP
    >>> gt.grad(erfinv)(gt.constant(0.0)).item()  # doctest: +SKIP
    0.8862269520759583
    """
    imported("torch")
    from .of_torch import gradtape_function, gradtape_module

    if hasattr(fn, "named_parameters"):
        return gradtape_module(fn, results)
    if not callable(fn):
        raise TypeError(f"from_torch: takes a function or a torch.nn.Module, got {fn!r}")
    return gradtape_function(fn, results)


def load(path: str | os.PathLike[str], **options: Any) -> Callable[..., Any]:
    """Load a file of :func:`gradtape.save` as a ``torch.nn.Module``.

    Parameters
    ----------
    path
        The file.
    options
        As for :func:`gradtape.load`, which reads it just as safely.

    Returns
    -------
    torch.nn.Module
        The model, with parameters to train and its custom gradients; see :func:`to_torch`.

    Raises
    ------
    BackendUnavailable
        If PyTorch is not installed.
    LoadError
        If the file cannot be read; see :func:`gradtape.load`.

    Examples
    --------
    >>> gt.save(gt.layers.Dense(2, input_shape=(3,)), "model.h5")  # doctest: +SKIP
    >>> net = gt.interop.torch.load("model.h5")  # doctest: +SKIP
    >>> sorted(net.state_dict())  # doctest: +SKIP
    ['bias', 'kernel']
    """
    imported("torch")
    found: Callable[..., Any] = to_torch(saving.load(path, **options))
    return found


publish(__name__)
