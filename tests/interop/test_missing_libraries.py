"""The bridges say what to install, and import a library when they first need it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gradtape as gt


@pytest.mark.parametrize("name", ["torch", "jax"])
@pytest.mark.parametrize("call", ["to_{0}(abs)", "from_{0}(abs)", "load('model.h5')"])
def test_a_missing_library_is_an_error_that_says_what_to_install(
    name: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    module = getattr(gt.interop, name)
    line = rf'{name} is not installed: pip install "gradtape\[{name}\]"'
    with pytest.raises(gt.errors.BackendUnavailable, match=line):
        eval(f"module.{call.format(name)}", {"module": module})


def test_libraries_are_not_imported_with_the_bridges() -> None:
    program = (
        "import sys, gradtape.interop.torch, gradtape.interop.jax; "
        "assert not {'torch', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_gradients_through_a_host_call_have_the_shapes_of_its_arguments() -> None:
    spec = gt.TensorSpec([None], "float32")

    def slope(x: gt.Tensor) -> gt.Tensor:
        return gt.grad(lambda x: gt.sum(gt.host_call(lambda x: x * x, x, results=spec)))(x)

    for given, shape in ((gt.TensorSpec([3]), (3,)), (gt.TensorSpec([None]), (None,))):
        (output,) = gt.function(slope).get_concrete_function(given).graph.outputs
        assert len(output.shape) == 1
        assert output.shape[0] == shape[0] or shape[0] is None
    assert gt.function(slope)(gt.constant([1.0, 2.0])).tolist() == [2.0, 4.0]
