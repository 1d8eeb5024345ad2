"""Every op in ONNX: what onnxruntime gives for its samples, or why it is refused."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elsewhere import Model, compare
from table import SAMPLES

import gradtape as gt
from gradtape.core.extend import flatten
from gradtape.testing import Sample

_LINALG = "ONNX has no such factorisation"
_COMPLEX = "ONNX's nodes do not support complex numbers"
_DOUBLE = "runtimes have it only in float32, and samples are float64"
_VALUES = "the shape of its result, or how many steps it takes, depends on values"
_DRAWS = "other runtimes draw different random numbers"
_RANKS = (
    "it informs the other ranks of losses that are not finite, and other runtimes have no ranks"
)
_PYTHON = "it runs Python, which other runtimes do not have"
_NONE = "ONNX has no such function"

#: Ops that are exported in float32 alone.
SINGLE = (
    *("angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cos"),
    *("cosh", "det", "erf", "erfc", "gelu", "gelu_slope", "sinh", "tan"),
)
#: Op -> why some or all of its real samples are refused; one that is exported is not here.
REFUSED = {
    **dict.fromkeys(SINGLE, _DOUBLE),
    **dict.fromkeys(("digamma", "lgamma", "nextafter", "polygamma", "spacing"), _NONE),
    **dict.fromkeys(("fftn", "ifftn", "irfft", "irfft_adjoint", "rfft", "cast"), _COMPLEX),
    **dict.fromkeys(
        (
            *("cholesky", "cofactor", "cofactor_adjoint", "eig", "eigh", "eigvals", "eigvalsh"),
            *("inv", "matrix_rank", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd"),
            "svdvals",
        ),
        _LINALG,
    ),
    **dict.fromkeys(
        ("bincount", "bincount_weighted", "expm", "gcd", "lcm", "one_per_occurrence", "unique"),
        _VALUES,
    ),
    **dict.fromkeys((name for name in SAMPLES if name.startswith("random_")), _DRAWS),
    **dict.fromkeys(("average_over_ranks", "end_average_over_ranks"), _RANKS),
    **dict.fromkeys(("check", "host_call", "print"), _PYTHON),
}


def is_real(sample: Sample) -> bool:
    return all(getattr(x, "dtype", np.dtype(float)).kind != "c" for x in sample.inputs)


def check(op: Any, sample: Sample, rtol: float = 1e-9) -> None:
    """Compare what onnxruntime gives for a sample with what gradtape gives."""
    fed = sample.feed(*(gt.constant(x) if isinstance(x, np.ndarray) else x for x in sample.inputs))
    given = list(fed) if isinstance(fed, tuple) else [fed]
    tensors = [x for x in given if isinstance(x, gt.Tensor)]

    def called(*tensors: Any) -> Any:
        rest = iter(tensors)
        found = op(*[next(rest) if isinstance(x, gt.Tensor) else x for x in given], **sample.params)
        return sample.view(*found) if isinstance(found, (list, tuple)) else sample.view(found)

    trace = gt.function(called).get_concrete_function(*tensors)
    model = Model(gt.export.onnx(trace))
    arrays = [np.array(x.numpy(), order="C", ndmin=x.ndim) for x in tensors]
    names = [info.name for info in model.proto.graph.input]
    found = model(**dict(zip(names, arrays, strict=True)))
    for mine, want in zip(found.values(), flatten(called(*tensors)), strict=True):
        want = want.numpy()
        assert (mine.dtype, mine.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(mine, want, rtol=rtol, atol=rtol / 100)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_an_op_gives_the_same_elsewhere_or_is_refused_by_name(name: str) -> None:
    refusals = []
    samples = [sample for sample in SAMPLES[name] if is_real(sample)]
    for sample in samples:
        try:
            with np.errstate(all="ignore"):
                check(gt.registry().ops[name], sample)
        except gt.export.ExportError as error:
            refusals.append(str(error))
    if name not in REFUSED:
        assert refusals == []
    elif samples:
        assert refusals, f"{name} is exported: take it from REFUSED"
    assert all(name in told or "complex" in told for told in refusals)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SINGLE)
def test_an_op_of_single_precision_gives_the_same_elsewhere(name: str) -> None:
    for sample in filter(is_real, SAMPLES[name]):
        inputs = [
            x.astype("float32") if getattr(x, "dtype", None) == np.float64 else x
            for x in sample.inputs
        ]
        single = Sample(*inputs, **sample.params).fed_through(sample.feed)
        check(gt.registry().ops[name], single, rtol=2e-5)


def test_the_guide_says_how_many_ops_have_a_form_in_onnx() -> None:
    assert set(REFUSED) <= set(SAMPLES)
    real = [name for name, samples in SAMPLES.items() if any(map(is_real, samples))]
    exported = [name for name in real if name not in REFUSED]
    guide = Path(__file__).parents[2] / "docs" / "guides" / "exporting.md"
    if guide.exists():
        told = f"covers {len(exported)} of the {len(real)} ops"
        assert told in guide.read_text(encoding="utf-8"), told


EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 300.0], np.float32)
BY_ELEMENT = (
    "abs ceil cos exp exp2 expm1 floor log log10 log1p log2 negative reciprocal relu round sigmoid "
    "sign signbit sin softplus softsign sqrt square tanh trunc isnan isinf isfinite arctan"
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BY_ELEMENT.split())
def test_ends_of_the_numbers_are_the_same_elsewhere(name: str) -> None:
    op = gt.registry().ops[name]
    found = Model(gt.export.onnx(lambda x: op(x), gt.TensorSpec([8])))(x=EDGES)["output"]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, op(gt.constant(EDGES)).numpy(), rtol=2e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", "add subtract multiply divide maximum minimum arctan2 hypot copysign power".split()
)
def test_ends_of_pairs_are_the_same_elsewhere(name: str) -> None:
    op = gt.registry().ops[name]
    x, y = (v.ravel() for v in np.meshgrid(EDGES, EDGES))
    specs = [gt.TensorSpec([64])] * 2
    found = Model(gt.export.onnx(lambda x, y: op(x, y), *specs))(x=x, y=y)["output"]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, op(gt.constant(x), gt.constant(y)).numpy(), rtol=2e-6)


@pytest.mark.parametrize("rows", ["batch", 4])
@pytest.mark.parametrize(
    "index",
    [
        (slice(None), None),
        (None,),
        (0, None),
        (slice(1, None), None, 2),
        (None, slice(None), None, slice(1, None)),
        (..., None),
    ],
    ids=str,
)
def test_gradients_of_indices_with_new_axes(index: Any, rows: Any) -> None:
    def slope(x: Any) -> Any:
        return gt.grad(lambda x: gt.sum(gt.sin(x[index])))(x)

    x = np.linspace(0.0, 2.0, 12, dtype=np.float32).reshape(4, 3)
    compare(slope, [gt.TensorSpec([rows, 3])], (x,))


#: Ops whose terms others add in another order, which decides what infinities of both signs give.
REORDERED = {"einsum", "einsum_adjoint", "recurrence"}
#: Ops that are not called with any combination of inputs: one input follows from the others.
BOUND = {"hypot_slope", "searchsorted"}
#: Ops whose node is the one that other exporters write, which leaves NaN out; the guide says so.
PLAIN = {"max_pool", "max_pool_gather", "max_pool_scatter"}
HARD = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "large": 1e15, "tiny": 1e-12}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(SAMPLES) - set(REFUSED) - BOUND | set(SINGLE)))
def test_what_is_not_finite_is_the_same_elsewhere(name: str) -> None:
    op = gt.registry().ops[name]
    sample = next(filter(is_real, SAMPLES[name]), None)
    arrays = [x for x in sample.inputs if isinstance(x, np.ndarray)] if sample else []
    if not any(x.dtype == float for x in arrays):
        return
    assert sample is not None
    arrays = [x.astype("float32") if x.dtype == float else x for x in arrays]

    def called(*tensors: Any) -> Any:
        rest = iter(tensors)
        given = [next(rest) if isinstance(x, np.ndarray) else x for x in sample.inputs]
        fed = sample.feed(*given)
        found = op(*(fed if isinstance(fed, tuple) else (fed,)), **sample.params)
        return sample.view(*found) if isinstance(found, (list, tuple)) else sample.view(found)

    try:
        trace = gt.function(called).get_concrete_function(*map(gt.constant, arrays))
    except ValueError:  # control flow with graphs of float64
        return
    model = Model(gt.export.onnx(trace))
    for i, array in enumerate(arrays):
        for kind, value in HARD.items():
            if array.dtype != np.float32 or not array.size or (kind == "nan" and name in PLAIN):
                continue
            if name in REORDERED and np.isinf(value):
                continue
            hard = array.copy()
            hard.flat[array.size // 2] = value
            given = [*arrays[:i], hard, *arrays[i + 1 :]]
            with np.errstate(all="ignore"):
                wanted = [y.numpy() for y in flatten(called(*map(gt.constant, given)))]
            found = model(**dict(zip(model.inputs, given, strict=True))).values()
            for mine, want in zip(found, wanted, strict=True):
                np.testing.assert_allclose(mine, want, 2e-4, 1e-5, err_msg=f"input {i}: {kind}")


SIZES = [(8, 3, 1, 2), (8, 2, 2, 2), (8, 1, 3, 1), (8, 2, 5, 1), (8, 3, 2, 4), (1, 3, 2, 1)]
CONVOLUTIONS = [
    (size, taps, stride, dilation, padding)
    for size, taps, stride, dilation in SIZES
    for padding in ("same", "valid", ((1, 2),))
]


def called_with(op: Any, arrays: Any, settings: Any, x: Any) -> Any:
    return op(x, *arrays, **settings)


@pytest.mark.parametrize("batch", [2, None])
@pytest.mark.parametrize("name", ["conv", "max_pool", "avg_pool"])
def test_strides_dilations_and_paddings_give_the_same_elsewhere(name: str, batch: Any) -> None:
    op = gt.registry().ops[name]
    random = np.random.default_rng(0)
    refused = 0
    for size, taps, stride, dilation, padding in CONVOLUTIONS:
        x = random.normal(size=(2, size, 2)).astype("float32")
        w = random.normal(size=(taps, 2, 2)).astype("float32")

        settings: dict[str, Any] = {"strides": (stride,), "padding": padding}
        of_conv = {"dilations": (dilation,), "groups": 1}
        settings |= of_conv if name == "conv" else {"window": (taps,)}
        call = functools.partial(called_with, op, [w] * (name == "conv"), settings)
        want = call(gt.constant(x)).numpy()
        if not want.size and batch is None:
            continue
        try:
            blob = gt.export.onnx(call, gt.TensorSpec([batch, size if batch else None, 2]))
        except gt.export.ExportError:
            refused += 1
            continue
        found = Model(blob)(x=x)["output"]
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    assert refused <= (0 if batch else 10)


def test_quotients_are_rounded_down_as_in_numpy() -> None:
    x, y = np.array([[1.0, -7.0, 7.0, 0.3], [0.1, 2.0, -2.0, 0.1]])
    specs = [gt.TensorSpec([4], "float64")] * 2
    found = Model(gt.export.onnx(lambda x, y: gt.floor_divide(x, y), *specs))(x=x, y=y)["output"]
    np.testing.assert_array_equal(found, np.floor_divide(x, y))
