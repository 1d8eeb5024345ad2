"""The error for an argument that a constructor does not take."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable

__all__ = ["unknown_argument"]

#: The names here for arguments of PyTorch and older Keras.
_MEANT = {
    "batch_first": "leave it out: the batch is the first axis",
    "betas": "beta_1 and beta_2",
    "bias": "use_bias",
    "bidirectional": "gt.layers.Bidirectional",
    "dilation": "dilation_rate",
    "embedding_dim": "output_dim",
    "eps": "epsilon",
    "hidden_size": "units",
    "in_channels": "leave it out: it follows from the first input",
    "in_features": "leave it out: it follows from the first input",
    "input_dim": "gt.Input(shape) as the first in a Sequential",
    "input_shape": "gt.Input(shape) as the first in a Sequential",
    "input_size": "leave it out: it follows from the first input",
    "lr": "learning_rate",
    "num_embeddings": "input_dim",
    "num_layers": "several layers in a Sequential",
    "out_channels": "filters",
    "out_features": "units",
    "stride": "strides",
    "weights": "set_weights on the layer, when it is built",
}


def unknown_argument(kind: type, name: str, more: Iterable[str] = ()) -> TypeError:
    """Return the error for an argument that a class does not take; it suggests what to use.

    Parameters
    ----------
    kind
        The class.
    name
        The argument.
    more
        Arguments that the class takes besides those of its constructors.
    """
    known: dict[str, None] = {}
    for base in kind.__mro__:
        given = inspect.signature(vars(base)["__init__"]).parameters if _has_init(base) else {}
        stars = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        plain = [p.name for p in [*given.values()][1:] if p.kind not in stars]  # not the object
        known |= dict.fromkeys(plain)
    known |= dict.fromkeys(more)
    near = difflib.get_close_matches(name, known, 1, 0.8)
    said = _MEANT.get(name) or "".join(near)
    use = "" if said.startswith("leave it out") else "use "
    hint = f"; {use}{said}" if said else f"; it takes {', '.join(known)}"
    return TypeError(f"{kind.__name__} takes no argument {name!r}{hint}")


def _has_init(kind: type) -> bool:
    return "__init__" in vars(kind) and kind is not object
