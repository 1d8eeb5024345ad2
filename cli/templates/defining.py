"""What programs use: an op, a layer, an optimizer, and a format of weights."""

from __future__ import annotations

from typing import Any

#: An op with its gradient, batching rule and samples.
OP: dict[str, Any] = {
    "what": "An op",
    "provides": ("op", "$name::soft_abs"),
    "needs": ', "numpy>=2.0"',
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

$api


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
    assert check_op(soft_abs, samples).ok


def test_values():
    np.testing.assert_allclose(soft_abs([3.0, 0.0], width=4.0), [1.0, 0.0])
    assert soft_abs(gt.constant([1, 2])).dtype == np.float64


$found
''',
    },
}

#: A module with a plugin whose classes files can name.
_NAMED = '''\
"""The plugin, which gradtape imports when {0} of a plugin is first needed."""

from collections.abc import Mapping
{1}
from gradtape.plugin import hookimpl, saved_classes

from . import {2}

$api


@hookimpl
def gradtape_modules() -> Mapping[str, type]:
    return saved_classes(vars({2}))  # by their names in files
'''

#: A layer that files can name.
LAYER: dict[str, Any] = {
    "what": "A layer",
    "provides": ("module", "$module.Scale"),
    "groups": ('"gradtape.modules"',),
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
        "src/$module/plugin.py": _NAMED.format("a class", "", "layers"),
        "src/$module/layers.py": '''\
"""The layers. What a class computes and its name in files never change."""

from typing import Any

import gradtape as gt


class Scale(gt.layers.Layer, saved_as="$module.Scale"):
    """Multiplies each feature by a weight, which is trained."""

    def __init__(self, start: float = 1.0, **rest: Any) -> None:  # name, dtype, trainable
        super().__init__(**rest)
        self.start = start  # files hold the attribute that has the name of the argument

    def build(self, input_shape: Any) -> None:
        """Create the weights, when the number of features is known."""
        start = gt.layers.initializers.Constant(self.start)
        self.factor = self.add_weight((input_shape[-1],), start, name="factor")

    def call(self, x: Any) -> Any:
        """Return the product."""
        return x * self.factor
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
    assert gt.saving.verify(tmp_path / "model.h5").ok
    again = gt.load(tmp_path / "model.h5")
    assert type(again.layers[1]) is Scale
    np.testing.assert_array_equal(again(x).numpy(), want)


$found
''',
    },
}

#: An optimizer that files and texts can name.
OPTIMIZER: dict[str, Any] = {
    "what": "An optimizer",
    "provides": ("module", "$module.SignMomentum"),
    "groups": ('"gradtape.modules"', '"gradtape.names"'),
    "use": """\
import gradtape as gt
import numpy as np
from $module import SignMomentum

model = gt.layers.Sequential([gt.layers.Dense(1)])
x = np.ones((8, 3), "float32")
gt.training.fit(model, (x, x[:, :1]), loss="mse", optimizer=SignMomentum(0.01), verbose=False)
gt.training.fit(
    model, (x, x[:, :1]), loss="mse", optimizer="$name::sign_momentum", verbose=False
)
""",
    "files": {
        "src/$module/__init__.py": '''\
"""An optimizer for gradtape."""

from .optimizers import SignMomentum

__all__ = ["SignMomentum"]
''',
        "src/$module/plugin.py": _NAMED.format(
            "an optimizer", "from typing import Any\n", "optimizers"
        )
        + """

@hookimpl
def gradtape_names() -> Mapping[str, Mapping[str, Any]]:
    return {"optimizer": {"$name::sign_momentum": optimizers.SignMomentum}}  # in texts
""",
        "src/$module/optimizers.py": '''\
"""The optimizers. What a class computes and its name in files never change."""

from collections.abc import Sequence
from typing import Any

import gradtape as gt
from gradtape.plugin import F
from gradtape.training.optimizers import by_blocks


class SignMomentum(gt.training.Optimizer, saved_as="$module.SignMomentum"):
    """Moves each weight by the learning rate, against the sign of an average of its gradients."""

    slots = ("averages",)  # a list of variables, one for each trained variable; they start with 0

    def __init__(self, learning_rate: Any = 0.001, beta: float = 0.9, **rest: Any) -> None:
        super().__init__(learning_rate, **rest)  # name, clipnorm, weight_decay, ...
        self.beta = beta  # files hold the attribute that has the name of the argument

    @by_blocks  # the formula is elementwise, so it may run on all variables at once
    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value of a variable, and the new values of its slots."""
        (rate,), (average,) = settings, state
        average = self.beta * average + (1.0 - self.beta) * gradient
        return value - rate * F.sign(average), (average,)
''',
        "tests/test_optimizer.py": '''\
"""The optimizer computes its formula, comes back from a file with its state, and has a name."""

import gradtape as gt
import numpy as np
import pytest

from $module import SignMomentum


def test_values_of_two_steps():
    w = gt.Variable([1.0, -2.0])
    optimizer = SignMomentum(0.5, beta=0.75)
    for gradient in ([4.0, -1.0], [-2.0, -1.0]):
        optimizer.apply_gradients([(gt.constant(gradient), w)])
    assert optimizer.averages[0].tolist() == [0.25, -0.4375]
    assert w.tolist() == [0.0, -1.0]


@pytest.mark.parametrize("options", [{}, {"clipnorm": 0.5}, {"weight_decay": 0.1}])
def test_a_loaded_optimizer_goes_on_as_if_nothing_had_happened(tmp_path, options):
    w, gradient = gt.Variable([1.0, -2.0]), gt.constant([4.0, -1.0])
    optimizer = SignMomentum(0.5, beta=0.75, **options)
    optimizer.apply_gradients([(gradient, w)])
    holder = gt.Module()
    holder.w, holder.optimizer = w, optimizer
    gt.save(holder, tmp_path / "run.h5")
    again = gt.load(tmp_path / "run.h5")
    assert type(again.optimizer) is SignMomentum
    assert again.optimizer.get_config() == optimizer.get_config()
    for held in (holder, again):
        held.optimizer.apply_gradients([(gt.constant([-20.0, 1.0]), held.w)])
    np.testing.assert_array_equal(again.w, holder.w)


def test_texts_name_it():
    found = gt.training.optimizers.get("$name::sign_momentum")
    assert type(found) is SignMomentum
    assert SignMomentum.from_config(SignMomentum(beta=0.8).get_config()).beta == 0.8


$found
''',
    },
}

#: A format of weights: functions that write and read arrays by name.
FORMAT: dict[str, Any] = {
    "what": "A format of weights",
    "provides": ("format", ".$module"),
    "needs": ', "numpy>=2.0"',
    "groups": ('"gradtape.formats"',),
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

$api


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


$found
''',
    },
}
