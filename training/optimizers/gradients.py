"""Gradients as optimizers get them: checked, and clipped by norm or value."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from ...core.extend import Tensor, Variable, as_tensor, constant, in_precision, ops, unsure

# by its public name: training does not know which plugin provides it
from ...nn import clip_by_norm
from ...plugins.ops.linalg.norms import clip_norms

if TYPE_CHECKING:
    from typing import TypedDict

    class Clipping(TypedDict, total=False):
        """The arguments for clipping, for signatures that pass them on."""

        clipnorm: float | None
        clipvalue: float | None
        global_clipnorm: float | None


__all__ = ["CLIPPING", "check_clipping", "checked", "clip_by_global_norm", "clipped", "global_norm"]


def checked(gradient: Any, variable: Any) -> Any:
    """Return a gradient as an array (in a trace, a symbol) of its variable's shape and dtype."""
    if type(gradient) is Tensor and isinstance(variable, Variable):  # a fast path
        array, own = gradient.array, variable.array
        shape = array.shape
        if array.dtype is own.dtype and not unsure(shape) and shape == own.shape:
            return array
    if not isinstance(variable, Variable):
        raise TypeError(
            f"apply_gradients: expected pairs (gradient, variable), got {type(variable).__name__} "
            "instead of a variable"
        )
    if type(gradient) is not Tensor:
        if gradient is None:
            raise ValueError(
                f"apply_gradients: the gradient of variable {variable.name!r} (shape "
                f"{variable.shape}) is None: the target does not depend on it in a differentiable "
                "way. tape.explain(target, variable) says why; leave the variable out if this is "
                "intended"
            )
        gradient = as_tensor(gradient)
    array = gradient.array
    if unsure(array.shape) or array.shape != variable.array.shape:
        raise ValueError(
            f"apply_gradients: the gradient of variable {variable.name!r} has shape {array.shape}, "
            f"but the variable has shape {variable.shape}"
        )
    if array.dtype is not variable.array.dtype and array.dtype != variable.array.dtype:
        array = gradient.astype(variable.dtype).array
    return array


# -- clipping -------------------------------------------------------------------------------------

#: The optimizers' arguments for clipping.
CLIPPING = ("clipnorm", "clipvalue", "global_clipnorm")


def global_norm(tensors: Sequence[Any]) -> Tensor:
    """Return the Euclidean norm of all elements of several tensors.

    Parameters
    ----------
    tensors
        Tensors of any shapes; entries that are ``None`` are skipped.

    Returns
    -------
    A scalar, 0 if there are no tensors. For ``float16``, it is ``float32``.

    Raises
    ------
    TypeError
        If an entry is not numeric.

    Examples
    --------
    >>> gt.training.global_norm([[3.0], None, [[4.0]]]).item()
    5.0
    """
    # norms, not sums of squares: those could overflow, and dividing by infinity would give zeros
    given = [in_precision(as_tensor(t), "float32") for t in tensors if t is not None]
    norms = [ops["norm"](t, axis=None) for t in given]
    if not norms:
        return constant(0.0)
    return norms[0] if len(norms) == 1 else ops["norm"](ops["stack"](*norms, axis=0), axis=None)


def clip_by_global_norm(
    tensors: Sequence[Any], clip_norm: Any, norm: Any = None
) -> tuple[list[Any], Tensor]:
    """Return tensors, scaled down together if their norm is larger than ``clip_norm``.

    Parameters
    ----------
    tensors
        Tensors of any shapes; entries that are ``None`` remain ``None``.
    clip_norm
        The largest norm, above 0.
    norm
        Their :func:`global_norm`, if it is known.

    Returns
    -------
    The scaled tensors in a list, and their norm before scaling, which may be infinite: the tensors
    are right even then.

    References
    ----------
    R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural networks",
    ICML 2013.

    Raises
    ------
    TypeError
        If an entry, or a norm, is not numeric.

    Examples
    --------
    >>> parts, norm = gt.training.clip_by_global_norm([[3.0], [4.0]], 1.0)
    >>> [round(part.item(), 3) for part in parts], norm.item()
    ([0.6, 0.8], 5.0)
    """
    places = [i for i, t in enumerate(tensors) if t is not None]
    given = [as_tensor(tensors[i]) for i in places]
    if norm is None:
        shortened, size = clip_norms(given, clip_norm, global_norm)
    else:
        size = as_tensor(norm)
        ratio = ops["maximum"](size, clip_norm) / clip_norm
        shortened = [(t / ratio).astype(t.dtype) for t in given]
    found: list[Any] = [None] * len(tensors)
    for i, t in zip(places, shortened, strict=True):
        found[i] = t
    return found, size


def check_clipping(optimizer: str, *sizes: float | None) -> dict[str, float]:
    """Return the arguments in :data:`CLIPPING` that are set, by name.

    Raises
    ------
    ValueError
        If more than one is set, or a size is not above 0.
    """
    given = {option: x for option, x in zip(CLIPPING, sizes, strict=True) if x is not None}
    sized = all(isinstance(size, Real) and size > 0 for size in given.values())
    if len(given) > 1 or not sized:
        raise ValueError(
            f"{optimizer}: set at most one of {', '.join(CLIPPING)}, to a number above 0, "
            f"got {given}"
        )
    return {option: float(size) for option, size in given.items()}


def clipped(
    gradients: Sequence[Any],
    clipnorm: float | None,
    clipvalue: float | None,
    global_clipnorm: float | None,
) -> list[Any]:
    """Return gradients, clipped as the argument that is set says."""
    if clipnorm is not None:
        return [clip_by_norm(g, clipnorm) for g in gradients]
    if clipvalue is not None:
        return [ops["clip"](g, -clipvalue, clipvalue) for g in gradients]
    if global_clipnorm is not None:
        return clip_by_global_norm(gradients, global_clipnorm)[0]
    return list(gradients)
