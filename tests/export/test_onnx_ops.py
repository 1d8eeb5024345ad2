"""Every op in ONNX: what onnxruntime gives for its samples, or why it is refused."""

from __future__ import annotations

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
