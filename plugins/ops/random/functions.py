"""Functions that draw random numbers from one shared generator."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Concatenate, ParamSpec

from ....core.extend import (
    Stream,
    Tensor,
    current_backend,
    current_device,
    function_from,
    is_transformed,
)
from .generator import Generator

Given = ParamSpec("Given")


class SharedGenerator(Generator):
    """A generator whose numbers are made on the current backend, wherever its state is."""

    def _count_on(self) -> Any:
        key = super()._count_on()
        if is_transformed(key.array):  # a trace has no backend
            return key
        device = current_device()
        return key.to(current_backend().name + (f":{device}" if device else ""))


_shared: Generator | None = None
_MAKING = Lock()


def shared() -> Generator:
    """Return the generator that functions use if they receive none."""
    global _shared
    if _shared is None:
        with _MAKING:
            if _shared is None:
                _shared = SharedGenerator(name="shared")
                Stream.shared = _shared.state
    return _shared


def set_seed(seed: int) -> None:
    """Seed the functions of this module: the same seed gives the same numbers again.

    Saved modules that draw from these functions draw from them again after loading.

    Parameters
    ----------
    seed
        An integer from 0 to ``2**63 - 1``. If you never call this function, the operating system
        provides a seed, a different one in each forked process; see :class:`Generator`.

    Raises
    ------
    ValueError
        If the seed is not such an integer.

    Examples
    --------
    >>> gt.random.set_seed(7)
    >>> first = gt.random.normal((2, 3))
    >>> gt.random.set_seed(7)
    >>> (gt.random.normal((2, 3)) == first).all().item()
    True
    """
    shared().set_seed(seed)


# -- the draws of the shared generator -------------------------------------------------------------


def _of_shared(
    draw: Callable[Concatenate[Generator, Given], Tensor],
) -> Callable[Given, Tensor]:
    """Return a method of ``Generator`` as a function of the shared generator."""
    name, signature = draw.__name__, inspect.signature(draw)
    _, *parameters = signature.parameters.values()
    names = ", ".join(x.name for x in parameters)
    source = f"def {name}({names}):\n    return shared().{name}({names})"
    made: Any = function_from(source, name, f"<gradtape.random.{name}>", globals())
    made.__defaults__ = tuple(x.default for x in parameters if x.default is not x.empty)
    made.__signature__ = signature.replace(parameters=parameters)
    made.__annotations__ = {x: hint for x, hint in draw.__annotations__.items() if x != "self"}
    made.__doc__, made.__wrapped__ = _adapted(draw), draw  # the source that docs link to
    return made


def _adapted(draw: Callable[..., Tensor], **renamed: str) -> str | None:
    """Return a method's docstring for the function, with some parameters renamed."""
    if draw.__doc__ is None:  # python -OO
        return None
    summary, _, rest = inspect.cleandoc(draw.__doc__).partition("\n\n")
    same = f"The same as :meth:`Generator.{draw.__name__}` of the generator that :func:`set_seed`"
    rest = rest.replace(">>> generator = gt.random.Generator(7)\n", "")
    text = f"{summary}\n\n{same} seeds.\n\n{rest.replace('generator.', 'gt.random.')}"
    for old, new in renamed.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text


normal = _of_shared(Generator.normal)
truncated_normal = _of_shared(Generator.truncated_normal)
exponential = _of_shared(Generator.exponential)
gamma = _of_shared(Generator.gamma)
bernoulli = _of_shared(Generator.bernoulli)
categorical = _of_shared(Generator.categorical)
randint = _of_shared(Generator.randint)
choice = _of_shared(Generator.choice)
permutation = _of_shared(Generator.permutation)
shuffle = _of_shared(Generator.shuffle)


def uniform(
    shape: int | Sequence[int], minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None
) -> Tensor:
    return shared().uniform(shape, minval, maxval, dtype)


uniform.__doc__ = _adapted(Generator.uniform, low="minval", high="maxval")
