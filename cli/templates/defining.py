"""What programs use: an op, a layer, and a format of weights."""

from __future__ import annotations

from typing import Any

#: An op with its gradient, batching rule and samples.
OP: dict[str, Any] = {
    "what": "An op",
    "use": """\
import gradtape as gt
from $module import soft_abs

x = gt.constant([3.0, -4.0])
assert soft_abs(x, width=4.0).shape == (2,)
assert gt.grad(lambda x: gt.sum(soft_abs(x)))(x).shape == (2,)
""",
    "files": {
        "src/$module/__init__.py": '''\
"""An op for gradtape."""

from .plugin import soft_abs

__all__ = ["soft_abs"]
''',
        "src/$module/plugin.py": '''\
"""The plugin. gradtape imports this module and calls its hooks; the import computes nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gradtape.plugin import F, Op, hookimpl

#: The version of gradtape.plugin that this was written for: see gradtape.plugin.API.
gradtape_api = (1, 0)


def _kernel(xp: Any, x: Any, *, width: float = 1.0) -> Any:
    """Compute the op: xp is the array namespace (NumPy, CuPy, ...), x a raw array of it."""
    return xp.sqrt(x * x + float(width) ** 2) - float(width)


def _gradient(g: Any, x: Any, width: float) -> Any:
    """Return the gradient with respect to x, computed by ops: it is differentiable and saved."""
    return g * F.conj(x / F.sqrt(x * x + float(width) ** 2))


def _infer(x: Any, width: float) -> tuple[Any, Any]:
    """Return the shape and dtype of the result without computing it, for traces."""
    return x.shape, np.result_type(x.dtype, 0.0)


soft_abs = Op(
    "$name::soft_abs",  # its name in files: never change what it computes
    _kernel,
    gradients={"x": _gradient},
    infer=_infer,
    batch="elementwise",
    doc="Return the absolute value, rounded at 0: ``sqrt(x * x + width * width) - width``.",
)


@hookimpl
def gradtape_ops() -> Sequence[Op]:
    return [soft_abs]


@hookimpl
def gradtape_samples() -> Mapping[str, Sequence[Any]]:
    from gradtape.testing import Sample  # only tests need it

    return {
        soft_abs.name: [
            Sample(np.array([-1.5, 0.0, 0.3, 2.0])),
            Sample(np.array([[0.5, -2.0, 1.0]]), width=0.5),
            Sample(np.array([0.5 + 0.3j, -1.0 + 0.2j])),
        ]
    }
''',
        "tests/test_op.py": '''\
"""check_op on the samples: gradients, traces, batches, files and dtypes."""

import gradtape as gt
import numpy as np
from gradtape.testing import check_op

from $module import soft_abs


def test_the_op_does_all_that_an_op_must_do():
    samples = gt.registry().samples[soft_abs.name]
    assert set(check_op(soft_abs, samples).values()) == {"passed"}


def test_values():
    np.testing.assert_allclose(soft_abs([3.0, 0.0], width=4.0), [1.0, 0.0])
    assert soft_abs(gt.constant([1, 2])).dtype == np.float64


def test_gradtape_finds_the_plugin():
    owner = gt.registry().owner("op", "$name::soft_abs")
    assert owner is not None and owner.distribution == "$name"
''',
    },
}

#: A layer that files can name.
LAYER: dict[str, Any] = {
    "what": "A layer",
    "group": '"gradtape.modules"',
    "use": """\
import gradtape as gt
from $module import Scale

model = gt.layers.Sequential([gt.layers.Dense(4), Scale(start=2.0)])
assert model(gt.ones((1, 3))).shape == (1, 4)
gt.save(model, "model.h5")
assert type(gt.load("model.h5").layers[1]) is Scale
""",
    "files": {
        "src/$module/__init__.py": '''\
"""A layer for gradtape."""

from .layers import Scale

__all__ = ["Scale"]
''',
        "src/$module/plugin.py": '''\
"""The plugin, which gradtape imports when a file first asks for classes."""

from collections.abc import Mapping

from gradtape.plugin import hookimpl, saved_classes

from . import layers

#: The version of gradtape.plugin that this was written for: see gradtape.plugin.API.
gradtape_api = (1, 0)


@hookimpl
def gradtape_modules() -> Mapping[str, type]:
    return saved_classes(vars(layers))
''',
        "src/$module/layers.py": '''\
"""The layers. What a class computes and its name in files never change."""

from typing import Any

import gradtape as gt


class Scale(gt.layers.Layer, saved_as="$module.Scale"):
    """Multiplies each feature by a weight, which is trained."""

    def __init__(self, start: float = 1.0, name: str | None = None) -> None:
        super().__init__(name=name)
        self.start = start

    def build(self, shape: Any) -> None:
        """Create the weights, when the number of features is known."""
        self.factor = self.add_weight((shape[-1],), "ones", name="factor")
        self.factor.assign(self.factor * self.start)

    def call(self, x: Any) -> Any:
        """Return the product."""
        return x * self.factor

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that create the layer again."""
        return {"start": self.start, "name": self.name}
''',
        "tests/test_layer.py": '''\
"""The layer computes, trains, and comes back from a file."""

import gradtape as gt
import numpy as np

from $module import Scale


def test_values_and_gradients():
    layer = Scale(start=2.0)
    x = gt.constant([[1.0, 3.0]])
    with gt.GradientTape() as tape:
        loss = gt.sum(layer(x) ** 2)
    assert layer(x).tolist() == [[2.0, 6.0]]
    assert tape.gradient(loss, layer.factor).tolist() == [4.0, 36.0]


def test_a_model_is_saved_with_the_layer(tmp_path):
    model = gt.layers.Sequential([gt.layers.Dense(4), Scale(start=2.0)])
    x = np.ones((2, 3), "float32")
    want = model(x).numpy()
    gt.save(model, tmp_path / "model.h5")
    assert gt.saving.verify(tmp_path / "model.h5")
    again = gt.load(tmp_path / "model.h5")
    assert type(again.layers[1]) is Scale
    np.testing.assert_array_equal(again(x).numpy(), want)


def test_gradtape_finds_the_plugin():
    owner = gt.registry().owner("module", "$module.Scale")
    assert owner is not None and owner.distribution == "$name"
''',
    },
}

#: A format of weights: functions that write and read arrays by name.
FORMAT: dict[str, Any] = {
    "what": "A format of weights",
    "group": '"gradtape.formats"',
    "use": """\
import gradtape as gt

model = gt.layers.Dense(2)
model(gt.ones((1, 3)))
model.save_weights("weights.$module")
model.load_weights("weights.$module")
""",
    "files": {
        "src/$module/__init__.py": '''\
"""A format of weights for gradtape: model.save_weights("weights.$module")."""

from .files import read, write

__all__ = ["read", "write"]
''',
        "src/$module/plugin.py": '''\
"""The plugin, which gradtape imports when a format is first asked for."""

from collections.abc import Mapping
from typing import Any

from gradtape.plugin import hookimpl

from . import files

#: The version of gradtape.plugin that this was written for: see gradtape.plugin.API.
gradtape_api = (1, 0)


@hookimpl
def gradtape_formats() -> Mapping[str, Any]:
    return {".$module": files}  # an object with write and read
''',
        "src/$module/files.py": '''\
"""The files: one line of JSON that describes the arrays, then their bytes."""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray[Any, Any]]


def write(
    path: str | os.PathLike[str], arrays: Mapping[str, Any], metadata: Mapping[str, str]
) -> None:
    """Write NumPy arrays by name, to a temporary path: gradtape replaces the user's file."""
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    head = {
        "arrays": [[name, x.dtype.str, np.shape(arrays[name])] for name, x in parts.items()],
        "metadata": dict(metadata),
    }
    with open(path, "wb") as file:
        file.write(json.dumps(head).encode() + b"\\n")
        for part in parts.values():
            file.write(part.tobytes())


def read(path: str | os.PathLike[str]) -> tuple[Arrays, dict[str, str]]:
    """Return the arrays of a file by name, and its metadata.

    Raises
    ------
    ValueError
        If it is not a complete file of this format.
    """
    with open(path, "rb") as file:
        try:
            head = json.loads(file.readline(1 << 24))
            described, metadata = head["arrays"], head["metadata"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a file of $name") from error
        found = {}
        for name, dtype, shape in described:
            count = int(np.prod(shape)) * np.dtype(dtype).itemsize
            data = file.read(count)
            if len(data) != count:
                raise ValueError(f"{path} ends in the middle of {name!r}")
            found[name] = np.frombuffer(data, dtype).reshape(shape)
        if file.read(1):
            raise ValueError(f"{path} has more bytes than its arrays")
    return found, metadata
''',
        "tests/test_format.py": '''\
"""check_format: arrays of all kinds come back, and broken files are refused."""

import gradtape as gt
import numpy as np
from gradtape.testing import check_format

def test_arrays_of_all_kinds_come_back_and_broken_files_are_refused():
    report = check_format(".$module")
    assert not report.wrong and not report.refused


def test_weights_are_written_and_loaded(tmp_path):
    model, other = gt.layers.Dense(2), gt.layers.Dense(2)
    x = np.ones((1, 3), "float32")
    want = model(x).numpy()
    other(x)
    model.save_weights(tmp_path / "weights.$module")
    other.load_weights(tmp_path / "weights.$module")
    np.testing.assert_array_equal(other(x).numpy(), want)


def test_gradtape_finds_the_plugin():
    owner = gt.registry().owner("format", ".$module")
    assert owner is not None and owner.distribution == "$name"
''',
    },
}
