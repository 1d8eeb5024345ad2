"""``tf.data``: gradtape's pipelines. TensorFlow's performance options are ignored."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape

from ....core.extend import flatten
from ..dtypes import as_dtype
from ..names import adapts
from ..tensors import convert_to_tensor

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "Options"]

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
#: Options of how TensorFlow runs a step, and its name.
_IGNORED = (
    "deterministic name num_parallel_calls output_shapes output_types use_unbounded_threadpool"
)
_native = gradtape.data.Dataset


class Options:
    """Options of TensorFlow's engine: any can be set, and all are ignored."""

    def __getattr__(self, name: str) -> Options:
        if name.startswith("__"):
            raise AttributeError(name)
        vars(self)[name] = Options()
        return vars(self)[name]


def _tuned(name: str) -> Callable[..., Any]:
    """Return a method of gradtape's dataset that also takes TensorFlow's options."""
    own = inspect.getattr_static(_native, name)
    method = own.__func__ if isinstance(own, classmethod) else own
    taken = inspect.signature(method).parameters

    @functools.wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        given = {k: x for k, x in options.items() if k in taken or k not in _IGNORED.split()}
        if given.get("cycle_length", AUTOTUNE) in (None, AUTOTUNE):
            given.pop("cycle_length", None)
        return method(self, *args, **given)

    return classmethod(call) if isinstance(own, classmethod) else call  # type: ignore[return-value]


@adapts("data.Dataset")
class Dataset(_native):
    """A pipeline; see :class:`gradtape.data.Dataset`. Python integers become int32."""

    for _name in (
        "batch cache concatenate enumerate filter flat_map interleave map padded_batch prefetch "
        "reduce repeat scan shard shuffle skip take take_while unbatch window zip"
    ).split():
        locals()[_name] = _tuned(_name)

    @classmethod
    def from_tensor_slices(cls, tensors: Any, name: Any = None) -> Any:
        """Return a dataset of the rows of arrays."""
        return super().from_tensor_slices(_stacked(tensors))

    @classmethod
    def from_tensors(cls, tensors: Any, name: Any = None) -> Any:
        """Return a dataset of one element."""
        return super().from_tensors(_stacked(tensors))

    @classmethod
    def from_generator(
        cls,
        generator: Any,
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: Any = None,
    ) -> Any:
        """Return a dataset of what a function yields, in the given dtypes."""
        kinds = output_types if output_signature is None else output_signature

        def typed(*element: Any) -> Any:
            found = element if len(element) > 1 or isinstance(kinds, tuple) else element[0]
            pairs = zip(flatten(found), flatten(kinds))
            cast = [np.asarray(x, as_dtype(getattr(k, "dtype", k))) for x, k in pairs]
            return gradtape.core.extend.pack_like(found, cast)

        found = super().from_generator(generator, *(args or ()))
        return found if kinds is None else found.map(typed)

    @classmethod
    def range(cls, *args: Any, output_type: Any = "int64", name: Any = None) -> Any:
        """Return a dataset of integers, like Python's ``range``."""
        found = super().range(*args)
        dtype = as_dtype(output_type)
        return found if dtype == np.int64 else found.map(lambda x: x.astype(dtype))

    def apply(self, transformation_func: Any, name: Any = None) -> Any:
        """Return a function's result for the dataset."""
        return super().apply(transformation_func)

    def cardinality(self) -> Any:
        """Return the number of elements: -1 if infinite, -2 if unknown."""
        found = super().cardinality()
        number = UNKNOWN_CARDINALITY if found is None else INFINITE_CARDINALITY
        return convert_to_tensor(np.int64(number if found in (None, math.inf) else found))

    def options(self) -> Options:
        """Return options, which are all ignored."""
        return Options()


def _stacked(tensors: Any) -> Any:
    """Convert numbers and lists of them to tensors; leave arrays and lists of arrays."""
    if isinstance(tensors, dict):
        return {key: _stacked(part) for key, part in tensors.items()}
    if isinstance(tensors, tuple):
        return tuple(map(_stacked, tensors))
    arrays = any(hasattr(leaf, "dtype") for leaf in flatten(tensors))
    return tensors if arrays else convert_to_tensor(tensors)
