"""SciPy's functions in programs: refusals, files, executors, exports, other backends."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.special as special

import gradtape as gt
from gradtape.errors import BrokenPathWarning, GradientError
from gradtape.plugins.scipy.plugin import INSTEAD

X = np.array([0.5, 1.5])


def slope(function, x=X):
    return gt.grad(lambda x: gt.sum(function(x)))(gt.constant(x)).numpy()


# -- what has no derivative ------------------------------------------------------------------------

REFUSED = {
    "jv": lambda v, x: special.jv(v, x),
    "gammainc": lambda v, x: special.gammainc(v, x),
    "pbdv": lambda v, x: special.pbdv(v, x)[0],
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("wrap", [lambda f: f, gt.function], ids=["eager", "traced"])
def test_an_argument_without_a_derivative_is_refused_by_name(name, wrap):
    function = wrap(REFUSED[name])
    v, x = gt.constant(np.array([1.0, 2.0])), gt.constant(X)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([v, x])
        y = function(v, x)
    assert tape.gradient(y, x).shape == (2,)  # although v is watched, too
    message = rf"scipy.special.{name}: no formula .* '[va]' .*stop_gradient"
    for sources in (v, [v, x]):
        with pytest.raises(GradientError, match=message):
            tape.gradient(y, sources)
    with pytest.raises(GradientError, match=message):
        gt.jvp(lambda v: function(v, x), (v,), (gt.ones_like(v),))
    held = gt.grad(lambda x: gt.sum(function(gt.stop_gradient(x), x)))(x)
    assert held.shape == (2,)
    with pytest.raises(GradientError, match=message):
        gt.grad(lambda x: gt.sum(function(x, x)))(x)


def test_an_argument_may_get_a_rule():
    """Here by differences, which a program may choose."""

    def rule(g, v, z):
        step = 1e-5
        slope = (special.jv(v + step, z) - special.jv(v - step, z)) / (2 * step)
        return g * slope, g * (special.jv(v - 1, z) - special.jv(v + 1, z)) / 2

    op = gt.registry().op("scipy::jv")
    own = op.rules, op.vjp, op.rules_provider
    gt.register_gradient("scipy::jv", override=True)(rule)
    try:
        found = gt.grad(lambda v: special.jv(v, 1.5))(gt.constant(np.array(1.0)))
        np.testing.assert_allclose(
            found.numpy(), (special.jv(1.001, 1.5) - special.jv(0.999, 1.5)) / 0.002, rtol=1e-5
        )
    finally:
        op.rules, op.vjp, op.rules_provider = own


def test_ufunc_methods_and_arguments():
    x = gt.constant(X)
    table = special.jv.outer(np.array([1.0, 2.0]), x)
    np.testing.assert_array_equal(table.numpy(), special.jv.outer([1.0, 2.0], X))
    with pytest.raises(TypeError, match=r"scipy.special.beta.reduce does not work on tensors"):
        special.beta.reduce(x)
    with pytest.raises(TypeError, match=r"scipy.special.j0 with \['dtype'\] .*astype"):
        special.j0(x, dtype=np.float32)
    np.testing.assert_array_equal(special.j0(x, out=np.zeros(2)), special.j0(X))
    with gt.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(TypeError, match=r"no plugin has a gradtape op for the ufunc"):
            special.ellip_harm(5, 8, 1, 1, x + 6.0)


# -- files, executors, exports ---------------------------------------------------------------------


class Wave(gt.Module):
    def __init__(self):
        super().__init__()
        self.w = gt.Variable(X, dtype="float64")

    @gt.function(input_signature=[gt.TensorSpec([None], "float64")])
    def __call__(self, x):
        sn = special.ellipj(x * self.w, 0.3)[0]
        d = special.pbdv(1.5, x)[1]
        return special.jv(1, x * self.w) + special.gammainc(2.0, x) * sn + d + special.expit(x)


def test_a_file_names_the_plugin_and_keeps_gradients(tmp_path):
    module, x = Wave(), gt.constant(X)
    with gt.GradientTape() as tape:
        y = module(x)
    gt.save(module, tmp_path / "wave.h5")
    needs = {r.plugin: r.ops for r in gt.saving.inspect(tmp_path / "wave.h5").requires}
    assert {"scipy::jv", "scipy::gammainc", "scipy::ellipj"} <= set(needs["scipy"])
    program = (
        "import sys, numpy as np, gradtape as gt\n"
        "module = gt.load(sys.argv[1])\n"
        "with gt.GradientTape() as tape:\n"
        "    y = module(gt.constant(np.array([0.5, 1.5])))\n"
        "print([y.tolist(), tape.gradient(y, module.w).tolist()])\n"
    )
    call = [sys.executable, "-c", program, str(tmp_path / "wave.h5")]
    out = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    found = np.array(eval(out))
    np.testing.assert_allclose(found, [y.tolist(), tape.gradient(y, module.w).tolist()], rtol=1e-14)
    gt.disable_plugin("scipy")
    try:
        with pytest.raises(gt.saving.MissingPlugin, match=r"needs plugin 'scipy'.*scipy::ellipj"):
            gt.load(tmp_path / "wave.h5")
    finally:
        gt.disable_plugin("scipy", disabled=False)
    assert gt.load(tmp_path / "wave.h5")(x).shape == (2,)


@pytest.mark.parametrize("executor", ["plain", "default", "fused"])
def test_executors_run_host_kernels(executor):
    module, x = Wave(), gt.constant(X)
    right = module(x).numpy()
    with gt.executor(executor):
        np.testing.assert_allclose(Wave()(x).numpy(), right, rtol=1e-14)


def test_a_trace_outlives_a_new_registry():
    function = gt.function(lambda x: special.jv(1, x))
    x = gt.constant(X)
    function(x)
    gt.disable_plugin("cupy")
    gt.disable_plugin("cupy", disabled=False)
    assert function(gt.constant(np.ones((2, 2)))).shape == (2, 2)
    assert function(x).shape == (2,)
    np.testing.assert_allclose(slope(lambda x: special.jv(1, x)), special.jvp(1, X), rtol=1e-14)


def test_exports_refuse_by_name():
    @gt.function
    def wave(x):
        return special.jv(1, x)

    for form in ("onnx", "stablehlo"):
        with pytest.raises(gt.export.ExportError, match="op 'scipy::jv'"):
            getattr(gt.export, form)(wave, gt.TensorSpec([2], "float64"))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: special.jv(1, x),
        lambda x: special.ellipj(x, 0.3)[1],
        lambda x: special.gammainc(2.0, x),
        special.i0e,
    ],
)
def test_jax_calls_the_host(function):
    pytest.importorskip("jax")
    x = gt.constant(X).to("jax")
    traced = gt.function(lambda x: function(x))
    for run in (function, traced):
        y = run(x)
        assert y.device.startswith("jax")
        np.testing.assert_allclose(y.to("numpy").numpy(), np.asarray(function(gt.constant(X))))
        found = gt.grad(lambda x, run=run: gt.sum(run(x)))(x)
        np.testing.assert_allclose(found.to("numpy").numpy(), slope(function), rtol=1e-12)


# -- what is imported, and when --------------------------------------------------------------------


def test_nothing_is_imported_before_a_function_of_scipy_receives_a_tensor():
    program = (
        "import sys, gradtape as gt\n"
        "x = gt.constant([1.0])\n"
        "gt.sin(x)\n"
        "loaded = [name for name in sys.modules if 'scipy' in name]\n"
        "assert loaded == ['gradtape.plugins.scipy', 'gradtape.plugins.scipy.plugin'], loaded\n"
        "assert 'scipy::jv' not in gt.registry().ops\n"
        "assert gt.registry().op('scipy::jv').inputs == ('v', 'z')\n"
        "assert 'scipy' not in sys.modules\n"
        "import scipy.special\n"
        "assert type(scipy.special.jv(1, x)) is gt.Tensor\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# -- functions that read values --------------------------------------------------------------------

A = np.array([[2.0, 0.3], [0.3, 1.5]])
READING = {
    "scipy.special.logsumexp": lambda x: special.logsumexp(x),
    "scipy.special.softmax": lambda x: special.softmax(x),
    "scipy.special.log_softmax": lambda x: special.log_softmax(x),
    "scipy.special.polygamma": lambda x: special.polygamma(1, x),
    "scipy.special.spherical_jn": lambda x: special.spherical_jn(1, x),
    "scipy.special.spherical_kn": lambda x: special.spherical_kn(1, x),
    "scipy.special.comb": lambda x: special.comb(x, 1.0),
    "scipy.linalg.expm": scipy.linalg.expm,
    "scipy.linalg.logm": scipy.linalg.logm,
    "scipy.linalg.sqrtm": scipy.linalg.sqrtm,
    "scipy.linalg.solve_sylvester": lambda x: scipy.linalg.solve_sylvester(x, x, x),
    "scipy.linalg.solve_triangular": lambda x: scipy.linalg.solve_triangular(x, X),
    "scipy.linalg.cho_factor": scipy.linalg.cho_factor,
    "scipy.linalg.cho_solve": lambda x: scipy.linalg.cho_solve((x, True), X),
    "scipy.linalg.solve": lambda x: scipy.linalg.solve(x, X),
    "scipy.linalg.eigh": scipy.linalg.eigh,
}


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize("kind", ["tensor", "variable"])
def test_a_function_that_reads_values_says_what_keeps_gradients(name, kind):
    _, module, short = name.split(".")
    value = A if module == "linalg" else X
    x = gt.constant(value) if kind == "tensor" else gt.Variable(value, dtype="float64")
    ours = re.escape(INSTEAD[f"scipy.{module}"][short])
    for strict in (False, True):
        with gt.GradientTape(strict=strict) as tape:
            tape.watch(x)
            found = READING[name](x)
            y = gt.sum(x) * np.sum(found[0] if isinstance(found, tuple) else found)
        if strict:
            with pytest.raises(GradientError, match=f"{name} reads"):
                tape.gradient(y, x)
            continue
        with pytest.warns(BrokenPathWarning, match=f"{name} reads .*: use {ours}") as seen:
            tape.gradient(y, x)
        assert seen[0].filename == __file__


def test_values_outside_of_tapes_and_intended_ones_are_read_silently():
    x = gt.constant(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        special.logsumexp(x)
        with gt.GradientTape() as tape:
            tape.watch(x)
            special.logsumexp(x.numpy())
            special.logsumexp(gt.constant(X))  # not followed


def test_the_names_to_use_exist():
    for table in INSTEAD.values():
        for text in table.values():
            for name in re.findall(r"(?:gradtape|scipy)(?:\.\w+)+", text):
                package, *path = name.split(".")
                root = gt if package == "gradtape" else scipy
                assert callable(functools.reduce(getattr, path, root)), name
