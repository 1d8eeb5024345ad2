"""``Draw``: the random choices of one call, most of them valid, and its arrays."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from fuzz.numpy_calls.arguments import LAYOUTS, Array

__all__ = ["DTYPES", "Draw"]

NDArray = np.ndarray[Any, Any]

#: Dtypes, each as often as it is chosen.
DTYPES = (
    "float64 float64 float64 float32 float32 float32 float16 int64 int64 int32 int16 int8 "
    "uint8 uint16 uint32 uint64 bool bool complex128 complex64"
).split()
SIZES = (1, 2, 2, 2, 3, 3, 3, 4)
RANKS = (0, 1, 1, 1, 2, 2, 2, 3, 3, 4)
LAYOUT_NAMES = ("plain",) * 6 + tuple(LAYOUTS)
FORMS = ("tensor",) * 14 + ("ndarray", "list")

_POOLS: dict[str, tuple[Any, ...]] = {
    "b": (False, True),
    "u": (0, 1, 1, 2, 2, 3, 4, 5, 7, 20, 200),
    "i": (-3, -2, -1, 0, 0, 1, 1, 2, 2, 3, 4, 5, 100, -100),
    "f": (-3.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.1, 0.5, 1.0, 1.0, 1.5, 2.0, 2.7, 3.0, 10.0),
    "c": (0j, 1j, -1j, 1 + 0j, -1 + 0j, 1 + 1j, 2 - 1j, -0.5 + 2j, 0.1 + 0.3j, 3 - 2j, -2 - 2j),
}
_SPECIAL: dict[str, tuple[Any, ...]] = {
    "f": (np.nan, np.inf, -np.inf, np.nan),
    "c": (complex(np.nan, 0), complex(np.inf, 1), complex(1, -np.inf), complex(np.nan, np.nan)),
}


class Draw:
    """The choices of one call.

    Parameters
    ----------
    rng
        The source of random numbers.
    dtype
        The dtype of the call's first array.
    """

    def __init__(self, rng: random.Random, dtype: str) -> None:
        self.rng = rng
        self.dtype = dtype
        self.first: NDArray | None = None
        self.given: dict[str, Any] = {}
        #: whether one argument may still be made wrong
        self.wrong = rng.random() < 0.15
        self.tensor_first = False

    # -- choices -----------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return self.rng.random() < probability

    def pick(self, values: Sequence[Any]) -> Any:
        """Return one of several values."""
        return values[int(self.rng.random() * len(values))]

    def mistake(self) -> bool:
        """Return whether to make this argument wrong: at most one, in few calls."""
        if self.wrong and self.rng.random() < 0.4:
            self.wrong = False
            return True
        return False

    def integer(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``, inclusive."""
        return low + int(self.rng.random() * (high - low + 1))

    # -- shapes ------------------------------------------------------------------------------------

    @property
    def x(self) -> NDArray:
        """The values of the first array."""
        if self.first is None:
            self.first = np.zeros((2, 2))
        return self.first

    def shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        """Return a shape with ``least`` to ``most`` axes, sometimes without elements."""
        rank = self.pick(RANKS)
        if self.mistake():
            least, most = 0, 4
        rank = min(max(rank, least), most)
        sizes = [self.pick(SIZES) for _ in range(rank)]
        if rank and self.chance(0.05):
            sizes[self.integer(0, rank - 1)] = 0
        return tuple(sizes)

    def beside(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return a shape that broadcasts with another."""
        if self.mistake():
            return (*shape[:-1], 7)
        if self.chance(0.5):
            return tuple(shape)
        cut = self.integer(0, len(shape))
        sizes = [1 if self.chance(0.25) else size for size in shape[cut:]]
        if cut == 0 and self.chance(0.1) and len(sizes) < 4:
            sizes.insert(0, self.pick(SIZES))
        return tuple(sizes)

    # -- arrays ------------------------------------------------------------------------------------

    def values(self, shape: Sequence[int], dtype: str, plain: bool = False) -> NDArray:
        """Return random values; unless ``plain``, some of them are special or large."""
        size = 1
        for n in shape:
            size *= n
        made = np.dtype(dtype)
        kind = made.kind
        pool: Sequence[Any] = _POOLS[kind]
        mood = 1.0 if plain else self.rng.random()
        if mood < 0.12 and kind in _SPECIAL:
            pool = (*pool[::2], *_SPECIAL[kind])
        elif mood < 0.06 and kind in "iu":
            info = np.iinfo(made)
            pool = (*pool[::2], info.min, info.max, info.max - 1)
        elif mood < 0.16 and kind in "fc":
            info = np.finfo(made)  # type: ignore[assignment]
            root = float(info.max) ** 0.4
            pool = (*pool[::2], root, -root, 1 / root)
        elif mood < 0.4 and kind in "fc":
            gauss = self.rng.gauss
            if kind == "f":
                return np.array([gauss(0, 2) for _ in range(size)], made).reshape(shape)
            normal = [complex(gauss(0, 2), gauss(0, 2)) for _ in range(size)]
            return np.array(normal, made).reshape(shape)
        count = len(pool)
        draw = self.rng.random
        listed: list[Any] = [pool[int(draw() * count)] for _ in range(size)]
        if kind in "iu" and made.itemsize == 1:
            listed = [x if -128 <= x <= (127 if kind == "i" else 255) else x % 100 for x in listed]
        return np.array(listed, made).reshape(shape)

    def wrap(self, values: NDArray, tensor: bool = False) -> Array:
        """Return values as an argument, in some layout and form; remember the first."""
        form = self.pick(FORMS)
        if tensor or (self.first is None and self.tensor_first):
            form = "tensor"
        if form == "list" and (values.dtype not in ("float64", "int64", "bool", "complex128")):
            form = "ndarray"
        layout = self.pick(LAYOUT_NAMES) if values.ndim and form != "list" else "plain"
        if self.first is None:
            self.first = values
        return Array(values, layout, form)

    def another_dtype(self) -> str:
        """Return the dtype of another array, which is often that of the first."""
        if self.first is not None and self.chance(0.6):
            return self.first.dtype.name
        if self.first is None:
            return self.dtype
        chosen: str = self.pick(DTYPES)
        return chosen

    def array(
        self,
        shape: Sequence[int] | None = None,
        dtype: str | None = None,
        kinds: str = "biufc",
        plain: bool = False,
    ) -> Array:
        """Return an array argument; unless it is made wrong, its dtype is one of ``kinds``."""
        dtype = dtype or self.another_dtype()
        if np.dtype(dtype).kind not in kinds and not self.mistake():
            fit = [name for name in DTYPES if np.dtype(name).kind in kinds]
            dtype = self.pick(fit)
        shape = self.shape() if shape is None else shape
        return self.wrap(self.values(shape, dtype, plain))

    def scalar(self, kinds: str = "if") -> Any:
        """Return a Python number."""
        kind = self.pick(kinds)
        if kind == "i":
            return self.pick(
                (0, 1, 2, 3, -1, 2, 1, 5, 300, -200) if self.chance(0.4) else (1, 2, 3)
            )
        if kind == "f":
            return self.pick((0.5, 1.0, 2.0, -1.5, 0.0, 3.7, 1e-3))
        return self.pick((1j, 1 + 2j)) if kind == "c" else self.pick((True, False))

    # -- axes --------------------------------------------------------------------------------------

    def axis(self, rank: int | None = None) -> Any:
        """Return an axis, which may count from the end."""
        rank = self.x.ndim if rank is None else rank
        if self.mistake():
            return self.pick((rank, -rank - 1, rank + 3, 1.5, "0", (0,), True))
        if not rank:
            return self.pick((0, -1))
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int | None = None) -> Any:
        """Return an axis or a tuple of different axes."""
        rank = self.x.ndim if rank is None else rank
        if self.chance(0.6):
            return self.axis(rank)
        if self.mistake():
            return self.pick(((0, 0), (0, rank), (0, -rank), 1.5, (0.5,)))
        count = self.integer(0, rank)
        chosen = self.rng.sample(range(rank), count)
        return tuple(a - rank if self.chance(0.4) else a for a in chosen)
