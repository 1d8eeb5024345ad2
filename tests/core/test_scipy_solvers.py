"""SciPy's optimizers and solvers, given gradtape's functions as they are.

Each result is compared with that of the same call on NumPy's functions and derivatives by hand:
the same numbers, and the same types. SciPy must not see a tensor where it expects an array.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt

optimize = pytest.importorskip("scipy.optimize", reason='pip install "gradtape[scipy]"')
integrate = pytest.importorskip("scipy.integrate", reason='pip install "gradtape[scipy]"')
linear = pytest.importorskip("scipy.sparse.linalg", reason='pip install "gradtape[scipy]"')

START = np.array([0.8, 1.1, 0.9])
TIMES = np.linspace(0.0, 2.0, 20)
OBSERVED = 1.5 * np.exp(-0.7 * TIMES) + 0.25 + 0.01 * np.cos(9 * TIMES)
GUESS = np.array([1.0, 0.1, 0.0])

DOWNHILL = np.array([15.0, -100.0, 60.0])


class Functions(SimpleNamespace):
    """The functions of the problems and their derivatives: NumPy's, or gradtape's of one kind."""

    def __init__(self, xp: Any, derive: Any, wrap: Callable[[Any], Any]) -> None:
        def valley(x: Any) -> Any:
            return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

        def ball(x: Any) -> Any:
            return 2.0 - xp.sum(x * x)

        def limits(x: Any) -> Any:
            return xp.stack([xp.sum(x * x), x[0] * x[1]])

        def decay(t: Any, a: Any, k: Any, c: Any) -> Any:
            return a * xp.exp(-k * t) + c

        def residuals(p: Any) -> Any:
            return decay(TIMES, p[0], p[1], p[2]) - OBSERVED

        def equations(x: Any) -> Any:
            return xp.stack(
                [x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]]
            )

        def oscillator(t: Any, y: Any) -> Any:
            return xp.stack([y[1], 5.0 * (1.0 - y[0] ** 2) * y[1] - y[0]])

        def cube(x: Any) -> Any:
            return x**3 - 2.0

        def sine(x: Any) -> Any:
            return xp.sin(x)

        super().__init__(
            valley=wrap(valley),
            ball=wrap(ball),
            limits=wrap(limits),
            decay=wrap(decay),
            residuals=wrap(residuals),
            equations=wrap(equations),
            oscillator=wrap(oscillator),
            cube=wrap(cube),
            sine=wrap(sine),
            **{name: wrap(fn) for name, fn in derive(SimpleNamespace(**locals())).items()},
        )


def by_hand(f: Any) -> dict[str, Any]:
    """Return the derivatives, written with NumPy."""

    def slope(x: Any) -> Any:
        g = np.zeros(3)
        inner = x[1:] - x[:-1] ** 2
        g[1:] += 200.0 * inner
        g[:-1] += -400.0 * x[:-1] * inner - 2.0 * (1.0 - x[:-1])
        return g

    def curvature(x: Any) -> Any:
        h = np.diag(-400.0 * x[:-1], 1) + np.diag(-400.0 * x[:-1], -1)
        h[[0, 1], [0, 1]] += 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
        h[[1, 2], [1, 2]] += 200.0
        return h

    def decay_slope(t: Any, a: Any, k: Any, c: Any) -> Any:
        e = np.exp(-k * t)
        return np.stack([e, -a * t * e, np.ones_like(t)], 1)

    def equations_slope(x: Any) -> Any:
        d = 1.5 * (x[0] - x[1]) ** 2
        return np.array([[1.0 + d, -d], [-d, 1.0 + d]])

    return {
        "slope": slope,
        "both": lambda x: (f.valley(x), slope(x)),
        "curvature": curvature,
        "product": lambda x, v: curvature(x) @ v,
        "ball_slope": lambda x: -2.0 * x,
        "limits_slope": lambda x: np.array([2.0 * x, [x[1], x[0], 0.0]]),
        "limits_curvature": lambda x, v: (
            2.0 * v[0] * np.eye(3) + v[1] * np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])
        ),
        "decay_slope": decay_slope,
        "residuals_slope": lambda p: decay_slope(TIMES, *p),
        "equations_slope": equations_slope,
        "both_equations": lambda x: (f.equations(x), equations_slope(x)),
        "oscillator_slope": lambda t, y: np.array(
            [[0.0, 1.0], [-10.0 * y[0] * y[1] - 1.0, 5.0 * (1.0 - y[0] ** 2)]]
        ),
        "cube_slope": lambda x: 3.0 * x**2,
        "cube_curvature": lambda x: 6.0 * x,
    }


def by_gradtape(f: Any) -> dict[str, Any]:
    """Return the derivatives that gradtape makes."""
    return {
        "slope": gt.grad(f.valley),
        "both": gt.value_and_grad(f.valley),
        "curvature": gt.hessian(f.valley),
        "product": lambda x, v: gt.hvp(f.valley, x, v),
        "ball_slope": gt.grad(f.ball),
        "limits_slope": gt.jacobian(f.limits),
        "limits_curvature": lambda x, v: gt.hessian(lambda z: gt.sum(v * f.limits(z)))(x),
        "decay_slope": lambda t, a, k, c: gt.jacfwd(lambda p: f.decay(t, p[0], p[1], p[2]))(
            gt.stack([a, k, c])
        ),
        "residuals_slope": gt.jacobian(f.residuals),
        "equations_slope": gt.jacobian(f.equations),
        "both_equations": lambda x: (f.equations(x), gt.jacobian(f.equations)(x)),
        "oscillator_slope": gt.jacrev(f.oscillator, argnums=1),
        "cube_slope": gt.grad(f.cube),
        "cube_curvature": gt.grad(gt.grad(f.cube)),
    }


PLAIN = Functions(np, by_hand, lambda fn: fn)
KINDS = {
    "ops": Functions(gt, by_gradtape, lambda fn: fn),
    "NumPy's functions": Functions(np, by_gradtape, lambda fn: fn),
    "traced": Functions(gt, by_gradtape, gt.function),
}

Solve = Callable[[Any], Any]
SOLVERS: dict[str, Solve] = {}

WITH_HESSIAN = ["Newton-CG", "trust-constr", "dogleg", "trust-ncg", "trust-krylov", "trust-exact"]
WITH_GRADIENT = ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", *WITH_HESSIAN]
WITHOUT = ["Nelder-Mead", "Powell", "COBYLA", "COBYQA"]


def minimize(name: str, method: str, **options: str) -> None:
    """Add a row: ``options`` are the names of functions, by the argument that takes them."""
    SOLVERS[name] = lambda f: optimize.minimize(
        f.valley, START, method=method, **{key: getattr(f, fn) for key, fn in options.items()}
    )


for method in WITH_GRADIENT:
    more = {"hess": "curvature"} if method in WITH_HESSIAN else {}
    minimize(f"minimize {method}", method, jac="slope", **more)
for method in ("Newton-CG", "trust-constr", "trust-ncg", "trust-krylov"):
    minimize(f"minimize {method} hessp", method, jac="slope", hessp="product")
for method in WITHOUT:
    minimize(f"minimize {method}", method)
for method in ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP"):
    SOLVERS[f"minimize {method} jac=True"] = lambda f, method=method: optimize.minimize(
        f.both, START, jac=True, method=method
    )
for method in ("trf", "dogbox", "lm"):
    SOLVERS[f"least_squares {method}"] = lambda f, method=method: optimize.least_squares(
        f.residuals, GUESS, jac=f.residuals_slope, method=method
    )
    SOLVERS[f"curve_fit {method}"] = lambda f, method=method: optimize.curve_fit(
        f.decay, TIMES, OBSERVED, GUESS, jac=f.decay_slope, method=method
    )
for method in ("hybr", "lm"):
    SOLVERS[f"root {method}"] = lambda f, method=method: optimize.root(
        f.equations, np.zeros(2), jac=f.equations_slope, method=method
    )
for method in ("broyden1", "anderson", "krylov", "df-sane"):
    SOLVERS[f"root {method}"] = lambda f, method=method: optimize.root(
        f.equations, np.array([0.8, 0.2]), method=method
    )
for method in ("newton", "halley", "secant", "brentq", "ridder", "bisect", "toms748"):
    SOLVERS[f"root_scalar {method}"] = lambda f, method=method: float(
        optimize.root_scalar(
            f.cube,
            x0=1.0,
            x1=1.5,
            bracket=(0.0, 2.0),
            method=method,
            fprime=f.cube_slope,
            fprime2=f.cube_curvature,
        ).root
    )
for method in ("RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"):
    more = {"jac": "oscillator_slope"} if method in ("Radau", "BDF", "LSODA") else {}
    SOLVERS[f"solve_ivp {method}"] = lambda f, method=method, more=more: integrate.solve_ivp(
        f.oscillator,
        (0.0, 2.0),
        [2.0, 0.0],
        method=method,
        **{key: getattr(f, fn) for key, fn in more.items()},
    )
for method in ("SLSQP", "trust-constr"):
    SOLVERS[f"NonlinearConstraint {method}"] = lambda f, method=method: optimize.minimize(
        f.valley,
        START,
        jac=f.slope,
        method=method,
        hess=f.curvature if method == "trust-constr" else None,
        constraints=[
            optimize.NonlinearConstraint(
                f.limits,
                [-1.0, -1.0],
                [2.0, 2.0],
                jac=f.limits_slope,
                **({"hess": f.limits_curvature} if method == "trust-constr" else {}),
            )
        ],
    )
SOLVERS |= {
    "SLSQP, constraints as dictionaries": lambda f: optimize.minimize(
        f.valley,
        START,
        jac=f.slope,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": f.ball, "jac": f.ball_slope}],
    ),
    "bounds": lambda f: optimize.minimize(
        f.valley, START, jac=f.slope, method="L-BFGS-B", bounds=[(0.0, 0.9)] * 3
    ),
    "fsolve": lambda f: optimize.fsolve(
        f.equations, np.zeros(2), fprime=f.equations_slope, full_output=True
    ),
    "root jac=True": lambda f: optimize.root(f.both_equations, np.zeros(2), jac=True),
    "leastsq": lambda f: optimize.leastsq(
        f.residuals, GUESS, Dfun=f.residuals_slope, full_output=True
    ),
    "least_squares soft_l1": lambda f: optimize.least_squares(
        f.residuals, GUESS, jac=f.residuals_slope, loss="soft_l1", bounds=(-5.0, 5.0)
    ),
    "newton of an array": lambda f: optimize.newton(
        f.cube, np.array([1.0, 1.4]), fprime=lambda x: 3.0 * x**2
    ),
    "fmin_l_bfgs_b": lambda f: optimize.fmin_l_bfgs_b(f.both, START),
    "fmin_bfgs": lambda f: optimize.fmin_bfgs(f.valley, START, f.slope, disp=False),
    "fmin_ncg": lambda f: optimize.fmin_ncg(
        f.valley, START, f.slope, fhess=f.curvature, disp=False
    ),
    "fmin_tnc": lambda f: optimize.fmin_tnc(f.valley, START, f.slope, disp=0),
    "fmin_slsqp": lambda f: optimize.fmin_slsqp(
        f.valley,
        START,
        fprime=f.slope,
        disp=False,
        f_ieqcons=f.ball,
        fprime_ieqcons=lambda x: np.reshape(f.ball_slope(x), (1, 3)),
    ),
    "minimize_scalar": lambda f: optimize.minimize_scalar(f.sine, bracket=(3.0, 5.0)),
    "basinhopping": lambda f: optimize.basinhopping(
        f.valley,
        START,
        niter=2,
        minimizer_kwargs={"jac": f.slope, "method": "L-BFGS-B"},
        rng=0,
    ),
    "differential_evolution": lambda f: optimize.differential_evolution(
        f.valley, [(0.0, 2.0)] * 3, maxiter=2, rng=0
    ),
    "shgo": lambda f: optimize.shgo(
        f.valley,
        [(0.0, 2.0)] * 3,
        minimizer_kwargs={"method": "SLSQP", "jac": f.slope},
        options={"jac": f.slope},
    ),
    "check_grad": lambda f: optimize.check_grad(f.valley, f.slope, START),
    # what follows in the tuple is what the functions returned, unchanged
    "line_search": lambda f: optimize.line_search(f.valley, f.slope, START, -PLAIN.slope(START))[
        :3
    ],
    "odeint": lambda f: integrate.odeint(
        f.oscillator, [2.0, 0.0], [0.0, 1.0, 2.0], Dfun=f.oscillator_slope, tfirst=True
    ),
    "quad": lambda f: integrate.quad(f.sine, 0.0, 1.0),
    "fixed_quad": lambda f: integrate.fixed_quad(f.sine, 0.0, 1.0),
    "cg": lambda f: linear.cg(
        linear.LinearOperator((3, 3), matvec=lambda v: f.product(START, v), dtype=float),
        np.ones(3),
    ),
    "gmres": lambda f: linear.gmres(
        linear.LinearOperator((3, 3), matvec=lambda v: f.product(START, v), dtype=float),
        np.ones(3),
    ),
    "eigsh": lambda f: linear.eigsh(
        linear.LinearOperator((3, 3), matvec=lambda v: f.product(START, v), dtype=float),
        k=1,
        v0=np.ones(3),
    )[0],
}
#: What SciPy's result says about its search: last bits of a derivative decide over one step more.
ABOUT = ("nfev", "njev", "nhev", "nit", "execution_time", "message", "status", "cg_niter")


def same(ours: Any, theirs: Any, place: str = "result") -> None:
    """Compare the numbers and the types of two results, through all containers."""
    assert not isinstance(ours, gt.Tensor), place
    if isinstance(theirs, Mapping):
        assert ours.keys() == theirs.keys(), place
        for key in theirs.keys() - set(ABOUT):
            same(ours[key], theirs[key], f"{place}.{key}")
    elif isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), place
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{place}[{number}]")
    elif isinstance(theirs, np.ndarray):
        assert type(ours) is type(theirs), place
        assert ours.dtype == theirs.dtype, place
        assert ours.flags.writeable == theirs.flags.writeable, place
    elif isinstance(theirs, (float, int)):
        assert isinstance(ours, (float, int, np.ndarray)), place


# SciPy's compiled code passes times and places as Python numbers
@pytest.mark.filterwarnings("ignore:function '(cube|oscillator)' was traced 32 times")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_takes_gradtapes_functions_for_numpys(name: str, kind: str) -> None:
    solve = SOLVERS[name]
    theirs, ours = solve(PLAIN), solve(KINDS[kind])
    same(ours, theirs)
    for one, other in zip(_numbers(ours), _numbers(theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def _numbers(result: Any) -> list[Any]:
    """Return the solution: of a result with names its ``x`` or ``y``, else its first part."""
    for name in ("x", "y"):
        if hasattr(result, name):
            return [getattr(result, name)]
    return [result[0] if isinstance(result, tuple) else result]


def test_a_vector_of_parameters_in_containers() -> None:
    tree = {"a": np.float64(1.0), "rest": [np.array([0.1, 0.0])]}
    start, unflatten = gt.flatten(tree)

    def loss(vector: Any) -> gt.Tensor:
        p = unflatten(vector)
        k, c = p["rest"][0]
        return gt.sum((p["a"] * gt.exp(-k * TIMES) + c - OBSERVED) ** 2)

    found = optimize.minimize(loss, start, jac=gt.grad(loss), method="L-BFGS-B", tol=1e-12)
    best = optimize.least_squares(PLAIN.residuals, GUESS).x
    assert type(found.x) is np.ndarray
    np.testing.assert_allclose(found.x, best, atol=1e-4)
    assert unflatten(found.x)["rest"][0].shape == (2,)


# -- where the rule ends ---------------------------------------------------------------------------


@pytest.fixture
def library() -> Any:
    """A library that computes with NumPy's functions, and that a plugin knows."""
    name = "calculator"
    module = sys.modules[name] = ModuleType(name)
    source = """
import numpy as np
def double(x): return np.atleast_1d(np.add(x, x))
def asked(x): return np.asarray(x)
def run(function, *args, **kwargs): return function(*args, **kwargs)
"""
    exec(source, vars(module))
    plugin = SimpleNamespace(gradtape_functions=gt.plugin.hookimpl(lambda: {name: dict}))
    gt.register_plugin(plugin, name)
    yield module
    gt.unregister_plugin(name)
    assert type(module.double(gt.constant(1.0))) is gt.Tensor, "the rule stays without its plugin"
    del sys.modules[name]


X = gt.constant([1.0, 2.0, 3.0])


def test_a_librarys_own_code_gets_arrays_that_it_may_write_to(library: Any) -> None:
    for x in (X, gt.Variable(X)):
        for function in (library.double, library.asked):
            found = function(x)
            assert type(found) is np.ndarray
            assert found.flags.writeable
            found += 1.0
        np.testing.assert_array_equal(x, [1.0, 2.0, 3.0])
    assert type(np.add(X, X)) is gt.Tensor  # the user's own code


def test_what_something_follows_stays_a_tensor(library: Any) -> None:
    v = gt.Variable(X)
    with gt.GradientTape() as tape:
        tape.watch(X)
        assert type(library.double(gt.constant([1.0]))) is np.ndarray  # nobody follows it
        y, z = library.double(X * 1.0), library.double(v)
    assert type(y) is type(z) is gt.Tensor
    by_x, by_v = tape.gradient([y, z], [X, v])
    np.testing.assert_array_equal(by_x, [2.0] * 3)
    np.testing.assert_array_equal(by_v, [2.0] * 3)
    with gt.ForwardAccumulator(X, gt.ones(3)) as accumulator:
        y = library.double(X)
    np.testing.assert_array_equal(accumulator.jvp(y), [2.0] * 3)
    np.testing.assert_array_equal(gt.jvp(library.double, (X,), (gt.ones(3),))[1], [2.0] * 3)
    np.testing.assert_array_equal(gt.jacobian(library.double)(X), 2.0 * np.eye(3))
    np.testing.assert_array_equal(
        gt.hessian(lambda x: gt.sum(library.double(x) ** 2))(X), 8.0 * np.eye(3)
    )
    np.testing.assert_array_equal(gt.function(library.double)(X), [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(gt.vmap(library.double)(X), [[2.0], [4.0], [6.0]])


def test_a_function_that_writes_into_a_tensor_is_refused(library: Any) -> None:
    run, x = library.run, gt.constant([1.0, 2.0, 3.0])
    for target in (x, gt.Variable(x)):
        with pytest.raises(TypeError, match="a tensor never changes"):
            run(np.copyto, target, 0.0)
        with pytest.raises(TypeError, match="a tensor never changes"):
            run(np.put, a=target, ind=[0], v=[0.0])
        with pytest.raises(TypeError, match="returns a new tensor"):
            run(np.add.at, target, [0], 1.0)
        for call in (
            lambda to: run(np.add, X, 1.0, out=to),
            lambda to: run(np.add, X, 1.0, to),
            lambda to: run(np.cumsum, X, out=to),
            lambda to: run(np.cumsum, X, 0, None, to),
        ):
            with pytest.raises(TypeError, match="a tensor never changes"):
                call(target)
        with pytest.raises(ValueError, match="not changed in place"):
            run(np.nan_to_num, target, copy=False)
        np.testing.assert_array_equal(target, [1.0, 2.0, 3.0])
    into = np.zeros(3)
    run(np.copyto, into, X)
    run(np.add, into, X, out=into)
    run(np.add.at, into, [0], X[:1])
    np.testing.assert_array_equal(into, [3.0, 4.0, 6.0])
    np.testing.assert_array_equal(run(np.einsum, "i,i", X, X), 14.0)


def test_questions_have_the_answers_that_they_have_elsewhere(library: Any) -> None:
    assert library.run(np.shares_memory, X, X)
    assert library.run(np.may_share_memory, X, X.numpy())
    assert library.run(np.shape, X) == (3,)
    assert library.run(np.result_type, X, np.float32) == X.dtype


def test_every_conversion_may_be_written_to(library: Any) -> None:
    x = gt.constant(np.ones(3))
    for convert in (
        np.asarray,
        lambda x: library.run(np.asarray, x),
        lambda x: library.run(np.asarray, x, dtype=np.float64),
        lambda x: library.run(np.asarray_chkfinite, x),
        lambda x: library.run(np.ascontiguousarray, x, np.float64),
    ):
        found = convert(x)
        if convert is np.asarray:
            assert not found.flags.writeable  # the user's own code
            continue
        found += 1.0
        np.testing.assert_array_equal(x, [1.0] * 3)


def test_scipy_overwrites_no_tensor() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    a, b = gt.constant(np.eye(3) + 1.0), gt.constant(np.arange(3.0))
    before = a.numpy().copy(), b.numpy().copy()
    linalg.solve(a, b, overwrite_a=True, overwrite_b=True)
    linalg.solve_triangular(a, b, overwrite_b=True)
    linalg.lstsq(a, b, overwrite_a=True, overwrite_b=True)
    np.testing.assert_array_equal(a, before[0])
    np.testing.assert_array_equal(b, before[1])


def test_a_solver_that_asks_for_a_dtype() -> None:
    rotation = pytest.importorskip("scipy.spatial.transform").Rotation.from_quat([0.0, 0, 0, 1])
    np.testing.assert_allclose(rotation.apply(gt.constant([1.0, 2.0, 3.0])), [1.0, 2.0, 3.0])
    found = integrate.tanhsinh(gt.sin, 0.0, 1.0)
    np.testing.assert_allclose(found.integral, 1.0 - np.cos(1.0))


def test_functions_of_special_return_tensors_where_nothing_follows_them() -> None:
    special = pytest.importorskip("scipy.special")
    x = gt.constant(np.array([1.5, 2.5]))
    for function in (
        special.gamma,
        lambda x: special.zeta(x, 1.0),
        special.lambertw,
        lambda x: special.jvp(1, x),
    ):
        with gt.GradientTape() as tape:
            tape.watch(x)
            assert type(function(x)) is gt.Tensor
        found = function(x)
        assert type(found) is gt.Tensor
        np.testing.assert_allclose(found, function(x.numpy()))


def test_parts_of_a_tensorflow_variable_are_followed(library: Any) -> None:
    tf = pytest.importorskip("gradtape.compat.tensorflow")
    v = tf.Variable([1.0, 2.0])
    with gt.GradientTape() as tape:
        y = library.double(v[0])
    np.testing.assert_array_equal(tape.gradient(y, v), [2.0, 0.0])


def test_a_watched_variable_is_followed_if_it_is_not_trainable(library: Any) -> None:
    v = gt.Variable([1.0, 2.0], trainable=False)
    with gt.GradientTape() as tape:
        assert type(library.double(v)) is np.ndarray
        tape.watch(v)
        y = library.double(v)
    np.testing.assert_array_equal(tape.gradient(y, v), [2.0, 2.0])
