"""What a constructor says to an argument that it does not take."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable

__all__ = ["unknown_argument"]

#: What arguments of PyTorch and of older Keras are called here.
_MEANT = {
    "batch_first": "nothing: the batch is the first axis",
    "betas": "beta_1 and beta_2",
    "bias": "use_bias",
    "bidirectional": "gt.layers.Bidirectional",
    "dilation": "dilation_rate",
    "embedding_dim": "output_dim",
    "eps": "epsilon",
    "hidden_size": "units",
    "in_channels": "nothing: the first input tells",
    "in_features": "nothing: the first input tells",
    "input_dim": "gt.Input(shape) as the first in a Sequential",
    "input_shape": "gt.Input(shape) as the first in a Sequential",
    "input_size": "nothing: the first input tells",
    "lr": "learning_rate",
    "num_embeddings": "input_dim",
    "num_layers": "as many layers in a Sequential",
    "out_channels": "filters",
    "out_features": "units",
    "stride": "strides",
    "weights": "set_weights on the layer, when it is built",
}


def unknown_argument(kind: type, name: str, more: Iterable[str] = ()) -> TypeError:
    """Return the error for an argument that a class does not take; it names what is meant.

    Parameters
    ----------
    kind
        The class.
    name
        The argument.
    more
        What the class takes besides the arguments of its constructors.
    """
    known: dict[str, None] = {}
    for base in kind.__mro__:
        given = inspect.signature(vars(base)["__init__"]).parameters if _has_init(base) else {}
        plain = [p.name for p in given.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        known |= dict.fromkeys(plain)
    known = {**dict.fromkeys(x for x in known if x != "self"), **dict.fromkeys(more)}
    near = difflib.get_close_matches(name, known, 1, 0.8)
    said = _MEANT.get(name) or "".join(near)
    hint = f"; use {said}" if said else f"; it takes {', '.join(known)}"
    return TypeError(f"{kind.__name__} takes no argument {name!r}{hint}")


def _has_init(kind: type) -> bool:
    return "__init__" in vars(kind) and kind is not object
