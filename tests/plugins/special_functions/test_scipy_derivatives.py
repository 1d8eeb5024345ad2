"""First and second derivatives of SciPy's functions, compared with mpmath's."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.special
from scipy import special
from special_errors import all_names, derivatives, measured, of_scipy, row_of
from special_references import CASES

import gradtape as gt
from gradtape.plugins.scipy.plugin import building

#: Functions whose results are complex: see the test of complex derivatives.
COMPLEX = {
    "_lambertw": lambda x: scipy.special.lambertw(x),
    "hankel1": lambda x: scipy.special.hankel1(1.3, x),
    "hankel1e": lambda x: scipy.special.hankel1e(1.3, x),
    "hankel2": lambda x: scipy.special.hankel2(1.3, x),
    "hankel2e": lambda x: scipy.special.hankel2e(1.3, x),
    "kelvin": lambda x: scipy.special.kelvin(x),
    "modfresnelm": lambda x: scipy.special.modfresnelm(x),
    "modfresnelp": lambda x: scipy.special.modfresnelp(x),
    "wofz": lambda x: scipy.special.wofz(x),
}
DIFFERENCES = 1e-7


def test_every_function_with_a_derivative_has_a_case():
    assert set(all_names()) <= CASES.keys() | COMPLEX.keys()
    assert len(all_names()) >= 190


def test_every_ufunc_of_scipy_has_an_op():
    theirs = {
        name
        for name, item in vars(scipy.special).items()
        if isinstance(item, np.ufunc) and not name.startswith("_")
    }
    assert theirs - building().FUNCTIONS.keys() <= {"jn"}  # the same object as jv


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_derivatives_of_two_orders(name):
    case = CASES[name]
    found = list(measured(name))
    assert found
    for one in found:
        if not one.exact and case.exempt:
            continue
        limits = (case.first, case.second) if one.exact else (DIFFERENCES, DIFFERENCES)
        assert one.first < limits[0], one
        assert one.second is None or one.second < limits[1], one


def test_only_one_second_derivative_is_missing():
    """Only those with respect to the distance of Smirnov's distribution."""
    refused = {name for name in CASES for one in measured_quickly(name) if one is None}
    assert refused == {"smirnov", "smirnovi"}


def measured_quickly(name):
    """Give the second derivative with respect to each argument, at two points."""
    row, points = row_of(name), CASES[name].points(2)
    function = of_scipy(name)
    for i, argument in enumerate(row.formulas):
        if argument in row.differentiable and points[i].dtype.kind == "f":

            def run(x, i=i):
                found = function(*points[:i], x, *points[i + 1 :])
                return found[0] if function.nout > 1 else found

            yield derivatives(run, points[i])[1]


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("part", ["real", "imag"])
def test_complex_results_of_real_numbers(name, part):
    x = np.array([0.5, 1.5, 2.5])
    ours, theirs = getattr(gt, part), getattr(np, part)
    found = COMPLEX[name](x)
    for k in range(len(found) if isinstance(found, tuple) else 1):

        def run(x, take, k=k):
            y = COMPLEX[name](x)
            return take(y[k] if isinstance(y, (tuple, list)) else y)

        def slope(x, run=run):
            return gt.grad(lambda x: gt.sum(run(x, ours)))(x)

        step = 1e-4
        first = slope(gt.constant(x)).numpy()
        second = gt.grad(lambda x: gt.sum(slope(x)))(gt.constant(x)).numpy()
        assert first.dtype == second.dtype == np.float64
        right = (run(x + step, theirs) - run(x - step, theirs)) / (2 * step)
        np.testing.assert_allclose(first, right, rtol=1e-6, atol=1e-6)
        ends = [slope(gt.constant(x + way)).numpy() for way in (step, -step)]
        np.testing.assert_allclose(second, (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: scipy.special.jv(1.3, z),
        lambda z: scipy.special.kve(1.3, z),
        lambda z: scipy.special.hankel1(1.3, z),
        lambda z: scipy.special.airy(z)[0],
        lambda z: scipy.special.erfcx(z),
        lambda z: scipy.special.gamma(z),
        lambda z: scipy.special.rgamma(z),
        lambda z: scipy.special.hyp2f1(0.7, 1.3, 2.2, z),
        lambda z: scipy.special.spence(z),
        lambda z: scipy.special.sici(z)[1],
        lambda z: scipy.special.lambertw(z),
        lambda z: scipy.special.eval_legendre(2.5, z),
        lambda z: scipy.special.wrightomega(z),
    ],
)
def test_holomorphic_functions_of_complex_numbers(function):
    z = np.array([0.5 + 0.3j, 1.2 - 0.7j, 0.8 + 1.1j])
    found = gt.grad(lambda z: gt.sum(gt.real(function(z))))(gt.constant(z)).numpy()
    step = 1e-5
    right = (function(z + step) - function(z - step)) / (2 * step)
    np.testing.assert_allclose(found, right.conj(), rtol=1e-7)


@pytest.mark.parametrize("name", ["ive", "yve", "airye", "elliprf"])
def test_complex_numbers_are_refused_where_the_derivative_is_not_complex(name):
    function = getattr(scipy.special, name)
    given = [1.0] * (function.nin - 1)
    with pytest.raises(TypeError, match=f"{name}: its derivatives are for real numbers"):
        function(*given, gt.constant([1.0 + 1.0j]))


def scaled(function, sign, **order):
    return lambda z: function(z, **order) * mp.exp(sign * 2 * z ** mp.mpf("1.5") / 3)


#: Functions whose recurrences cancel for large arguments, and mpmath's.
TAILS = {
    "erfcx": (special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x)),
    "dawsn": (special.dawsn, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)),
    "i0e": (special.i0e, lambda x: mp.besseli(0, x) * mp.exp(-x)),
    "k1e": (special.k1e, lambda x: mp.besselk(1, x) * mp.exp(x)),
    "ive": (lambda x: special.ive(1.5, x), lambda x: mp.besseli(1.5, x) * mp.exp(-x)),
    "kve": (lambda x: special.kve(2.0, x), lambda x: mp.besselk(2, x) * mp.exp(x)),
    "airye ai": (lambda x: special.airye(x)[0], scaled(mp.airyai, 1)),
    "airye bip": (lambda x: special.airye(x)[3], scaled(mp.airybi, -1, derivative=1)),
    "voigt": (
        lambda x: special.voigt_profile(x, 1.0, 1.0),
        lambda x: (
            mp.re(mp.exp(-((x + 1j) ** 2) / 2) * mp.erfc((1 - 1j * x) / mp.sqrt(2)))
            / mp.sqrt(2 * mp.pi)
        ),
    ),
}


@pytest.mark.parametrize("name", TAILS)
@pytest.mark.parametrize("x", [8.0, 60.0, 1000.0])
def test_large_arguments(name, x):
    function, reference = TAILS[name]
    with mp.workdps(80):
        at, step = mp.mpf(x), mp.mpf(10) ** -15
        low, middle, high = (reference(at + way * step) for way in (-1, 0, 1))
        right = [float((high - low) / (2 * step)), float((high - 2 * middle + low) / step**2)]
    found = derivatives(function, np.array(x))
    np.testing.assert_allclose(found, right, rtol=1e-10)


@pytest.mark.parametrize("values", [(2.0, 2.0), (2.0, 2.0 + 1e-13), (1e-8, 3.0)])
def test_means_of_equal_numbers(values):
    """A formula with a quotient of differences would fail here."""
    a = gt.constant(np.array(values))
    hessian = gt.hessian(lambda a: scipy.special.agm(a[0], a[1]))(a).numpy()
    assert np.isfinite(hessian).all()
    # the mean is homogeneous of degree 1
    np.testing.assert_allclose(hessian @ a.numpy(), 0.0, atol=1e-12 * np.abs(hessian).max())
    if values == (2.0, 2.0):
        np.testing.assert_allclose(hessian, np.array([[-1, 1], [1, -1]]) / 16, rtol=1e-12)


def test_elliptic_integrals_have_derivatives_at_the_circle():
    slopes = gt.grad(lambda m: gt.sum(scipy.special.ellipk(m)))(gt.constant([0.0, 0.0]))
    np.testing.assert_allclose(slopes.numpy(), np.pi / 8, rtol=1e-6)
    x = gt.constant(np.array([1.0, 1.0, 1.0]))
    gradient = gt.grad(lambda x: scipy.special.elliprd(x[0], x[1], x[2]))(x).numpy()
    np.testing.assert_allclose(gradient, [-0.3, -0.3, -0.9], rtol=1e-12)


def test_the_polynomials_of_degree_0_are_constant():
    x = gt.constant(np.array([0.3, 0.6]))
    for name in building().FUNCTIONS:
        if name.startswith("eval_"):
            function = getattr(scipy.special, name)
            for n in (0, np.array(0), np.array([0, 0])):
                given = [n, *[1.5] * (function.nin - 2)]
                slope = gt.grad(lambda x, f=function, g=given: gt.sum(f(*g, x)))(x)
                assert slope.tolist() == [0.0, 0.0], (name, n)


def test_binomial_coefficients_that_vanish():
    """Where ``psi`` is infinite, and the coefficient is 0."""
    n = gt.constant(np.array([2.0, 1.0]))
    k = np.array([3.0, 4.0])
    slope = gt.grad(lambda n: gt.sum(scipy.special.binom(n, k)))(n).numpy()
    # of n (n - 1) (n - 2) / 6 and of n (n - 1) (n - 2) (n - 3) / 24
    np.testing.assert_allclose(slope, [2 / 6, 2 / 24], rtol=1e-13)


# -- where a formula divides by 0 or multiplies 0 by infinity --------------------------------------

#: A function of one or two arguments, where, and its first derivatives and Hessian there.
AT_ZEROS = {
    "xlogy": (special.xlogy, (0.0, 2.0), [np.log(2), 0], [[0, 0.5], [0.5, 0]]),
    "xlogy at 1": (special.xlogy, (0.0, 1.0), [0, 0], [[0, 1], [1, 0]]),
    "xlog1py": (special.xlog1py, (0.0, 1.0), [np.log(2), 0], [[0, 0.5], [0.5, 0]]),
    "xlog1py of x": (lambda x: special.xlog1py(x, x), (0.0,), [0], [[2]]),
    "rel_entr": (lambda y: special.rel_entr(0.0, y), (2.0,), [0], [[0]]),
    "kl_div": (lambda y: special.kl_div(0.0, y), (2.0,), [1], [[0]]),
    "sici": (lambda x: special.sici(x)[0], (0.0,), [1], [[0]]),
    "shichi": (lambda x: special.shichi(x)[0], (0.0,), [1], [[0]]),
    "gammainc 1": (lambda x: special.gammainc(1.0, x), (0.0,), [1], [[-1]]),
    "gammainc 2": (lambda x: special.gammainc(2.0, x), (0.0,), [0], [[1]]),
    "gammainc 3": (lambda x: special.gammainc(3.0, x), (0.0,), [0], [[0]]),
    "gdtr": (lambda x: special.gdtr(1.0, 2.0, x), (0.0,), [0], [[1]]),
    "chdtr": (lambda x: special.chdtr(4.0, x), (0.0,), [0], [[0.25]]),
    "pdtr": (lambda m: special.pdtr(1, m), (0.0,), [0], [[-1]]),
    "betainc": (lambda x: special.betainc(2.0, 3.0, x), (0.0,), [0], [[12]]),
    "fdtr": (lambda x: special.fdtr(4.0, 2.0, x), (0.0,), [0], [[8]]),
}


@pytest.mark.parametrize("name", AT_ZEROS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_derivatives_at_zeros(name):
    function, at, first, second = AT_ZEROS[name]
    x = gt.constant(np.array(at))

    def run(x):
        return function(*[x[i] for i in range(len(at))])

    np.testing.assert_allclose(gt.grad(run)(x), first, atol=1e-14)
    np.testing.assert_allclose(gt.hessian(run)(x), second, atol=1e-14)
    ones = gt.ones_like(x)
    along = gt.jvp(gt.grad(run), (x,), (ones,))[1]
    np.testing.assert_allclose(along, np.sum(second, axis=1), atol=1e-14)


@pytest.mark.parametrize(
    ("name", "reference", "points"),
    [
        ("binom", mp.binomial, [(0, 2), (1, 2), (2, 2), (1, 4), (5, 6), (5, 8), (5, -1), (4, -3)]),
        ("poch", mp.rf, [(0, 2), (0, 0.5), (-1, 2), (-2, 3), (-2, 2.5), (-3, 5), (-1, 1.5)]),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_second_derivatives_where_a_quotient_of_gamma_functions_vanishes(name, reference, points):
    for at in points:
        found = gt.hessian(lambda a: of_scipy(name)(a[0], a[1]))(gt.constant(np.array(at, float)))
        with mp.workdps(40):
            near = [mp.mpf(v) + mp.mpf(10) ** -25 for v in at]  # mpmath is infinite at a pole
            second = [[mp.diff(reference, near, order) for order in row] for row in ORDERS]
        np.testing.assert_allclose(found, np.array(second, float), 1e-8, 1e-13, err_msg=str(at))


ORDERS = [[(2, 0), (1, 1)], [(1, 1), (0, 2)]]
