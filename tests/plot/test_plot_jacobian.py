"""Pictures of Jacobians: what is drawn where, in which colours, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt

mpl = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def image_of(axes: Any) -> np.ndarray:
    """Return what is shown, nan where nothing is; after a rendering, which must not fail."""
    axes.figure.canvas.draw()
    shown = axes.images[0].get_array()
    return np.ma.filled(shown.astype(float), np.nan)


def test_a_matrix_is_an_image() -> None:
    j = gt.constant([[1.0, -2.0, 0.0], [0.0, 0.5, 0.25]])
    axes = gt.plot.jacobian(j)
    assert axes in plt.gcf().axes
    np.testing.assert_array_equal(image_of(axes), j.numpy())
    assert axes.images[0].get_clim() == (-2.0, 2.0)
    assert axes.images[0].get_cmap().name == "RdBu_r"
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("target", "source")
    assert axes.images[0].colorbar is not None
    assert not axes.lines


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (3, 2), (40, 4)])
def test_rows_and_columns_are_counted_by_integers(shape: tuple[int, int]) -> None:
    axes = gt.plot.jacobian(np.ones(shape))
    image_of(axes)
    for length, ticks in zip(shape, (axes.get_yticks(), axes.get_xticks())):
        shown = [tick for tick in ticks if -0.5 <= tick <= length - 0.5]
        assert shown
        assert all(tick == round(tick) for tick in shown)


def test_zero_is_white_and_nan_is_grey() -> None:
    axes = gt.plot.jacobian([[0.0, 3.0], [float("nan"), -1.0]])
    image = axes.images[0]
    assert image.get_clim() == (-3.0, 3.0)
    np.testing.assert_allclose(image.to_rgba(image.get_array())[0, 0, :3], 1.0, atol=0.05)
    assert np.isnan(image_of(axes)[1, 0])
    np.testing.assert_allclose(axes.get_facecolor()[:3], 0.8)


def test_infinities_do_not_set_the_scale() -> None:
    axes = gt.plot.jacobian([[np.inf, 2.0], [-np.inf, -0.5]])
    image_of(axes)
    assert axes.images[0].get_clim() == (-2.0, 2.0)


@pytest.mark.parametrize("values", [np.zeros((2, 2)), np.full((2, 2), np.nan)])
def test_where_nothing_has_a_size_the_scale_is_one(values: np.ndarray) -> None:
    axes = gt.plot.jacobian(values)
    image_of(axes)
    assert axes.images[0].get_clim() == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"vmax": 5.0}, (-5.0, 5.0)),
        ({"vmin": -3.0}, (-3.0, 3.0)),
        ({"vmin": -1.0, "vmax": 4.0}, (-1.0, 4.0)),
    ],
)
def test_given_limits_hold(given: dict[str, float], expected: tuple[float, float]) -> None:
    assert gt.plot.jacobian(np.eye(3), **given).images[0].get_clim() == expected


def test_arguments_of_imshow_are_handed_on() -> None:
    norm = mpl.colors.SymLogNorm(1e-3, vmin=-10.0, vmax=10.0)
    axes = gt.plot.jacobian(np.eye(3), cmap="seismic", norm=norm, extent=(0, 1, 0, 1))
    image = axes.images[0]
    image_of(axes)
    assert image.get_cmap().name == "seismic"
    assert image.norm is norm
    assert tuple(image.get_extent()) == (0, 1, 0, 1)


def test_the_axes_that_are_given_are_used() -> None:
    figure, (left, right) = plt.subplots(1, 2)
    plt.sca(left)
    assert gt.plot.jacobian(np.eye(2), right) is right
    assert gt.plot.jacobian(np.eye(2), ax=left) is left
    assert len(figure.axes) == 4  # a colour bar for each


def test_a_figure_within_a_figure_will_do() -> None:
    part = plt.figure().subfigures(1, 2)[0]
    axes = gt.plot.jacobian(np.ones((2, 2, 2, 2)), part.subplots())
    part.figure.canvas.draw()
    assert len(axes.lines) == 2


def test_four_axes_are_a_patch_for_every_target_and_source() -> None:
    j = np.random.default_rng(0).standard_normal((3, 2, 4, 5))
    axes = gt.plot.jacobian(j)
    image = image_of(axes)
    assert image.shape == (2 * 3, 5 * 4)
    for i, k in np.ndindex(2, 5):
        patch = image[3 * i : 3 * (i + 1), 4 * k : 4 * (k + 1)]
        np.testing.assert_array_equal(patch, j[:, i, :, k])
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("target[:, i]", "source[:, j]")
    # lines between patches, numbers in their middles
    drawn = [line.get_xydata() for line in axes.lines]
    assert [xy[0, 1] for xy in drawn[:1]] == [2.5]
    assert [xy[0, 0] for xy in drawn[1:]] == [3.5, 7.5, 11.5, 15.5]
    assert axes.get_yticks().tolist() == [1.0, 4.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list("01234")


def test_many_patches_have_few_numbers() -> None:
    axes = gt.plot.jacobian(np.ones((2, 40, 2, 3)))
    image_of(axes)
    ticks = [int(label.get_text()) for label in axes.get_yticklabels()]
    assert ticks == list(range(0, 40, 4))
    assert axes.get_yticks()[1] == 4 * 2 + 0.5


def test_independent_examples_have_diagonal_patches() -> None:
    gt.random.set_seed(0)
    x = gt.random.normal((4, 3))
    layer = gt.layers.Dense(2, activation="elu")
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    image = image_of(gt.plot.jacobian(tape.jacobian(y, x)))
    patches = image.reshape(2, 4, 3, 4).swapaxes(1, 2)
    assert not patches[..., ~np.eye(4, dtype=bool)].any()
    assert patches[..., np.eye(4, dtype=bool)].all()


@pytest.mark.parametrize("batch", [1, 2, 5, 9])
def test_three_axes_are_a_patch_for_every_example(batch: int) -> None:
    j = np.random.default_rng(batch).standard_normal((batch, 2, 3))
    axes = gt.plot.jacobian(j)
    image = image_of(axes)
    rows, columns = image.shape[0] // 2, image.shape[1] // 3
    patches = image.reshape(rows, 2, columns, 3).swapaxes(1, 2).reshape(-1, 2, 3)
    np.testing.assert_array_equal(patches[:batch], j)
    assert np.isnan(patches[batch:]).all()
    assert len(patches) - batch < columns  # no row is empty
    assert not axes.get_xticks().size
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("target", "source")


def test_the_axes_of_patches_count_elements() -> None:
    with pytest.raises(ValueError, match="extent is not supported for patches"):
        gt.plot.jacobian(np.ones((2, 2, 2)), extent=(0, 1, 0, 1))


@pytest.mark.parametrize(
    "j",
    [
        gt.Variable(np.eye(2)),
        [[1, 0], [0, 1]],
        np.eye(2, dtype=bool),
        np.eye(2, dtype=np.float16),
        gt.constant(np.eye(2, dtype=np.float32)),
    ],
    ids=["variable", "list", "bool", "float16", "float32"],
)
def test_whatever_holds_real_numbers_is_drawn(j: Any) -> None:
    np.testing.assert_array_equal(image_of(gt.plot.jacobian(j)), np.eye(2))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4, 5, 6)])
def test_other_ranks_are_refused_by_their_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"plot\.jacobian: .*reshape it to a matrix") as caught:
        gt.plot.jacobian(np.ones(shape))
    assert f"got {shape}" in str(caught.value)
    assert not plt.get_fignums()  # nothing was begun


@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3), (0, 2, 0, 2)])
def test_what_is_empty_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        gt.plot.jacobian(np.ones(shape))


def test_complex_values_and_words_are_refused() -> None:
    with pytest.raises(TypeError, match=r"got complex64 of shape \(2, 2\); draw the real"):
        gt.plot.jacobian(np.eye(2, dtype=np.complex64))
    with pytest.raises(TypeError, match="expected real numbers"):
        gt.plot.jacobian([["a", "b"]])


def test_the_callers_arguments_and_values_stay_as_they_are() -> None:
    values, settings = np.eye(2), {"cmap": "seismic"}
    gt.plot.jacobian(values, **settings)
    assert settings == {"cmap": "seismic"}
    np.testing.assert_array_equal(values, np.eye(2))


PROGRAM = """
import sys
import gradtape as gt

assert "gradtape.plot" not in sys.modules
assert "matplotlib" not in sys.modules
gt.plot  # found without Matplotlib
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None  # as if it were not installed
try:
    gt.plot.jacobian([[1.0]])
except ImportError as error:
    print(error)
"""


def test_matplotlib_is_imported_when_a_picture_is_drawn() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (
        'plot.jacobian: Matplotlib is not installed: pip install "gradtape[plot]"'
    )
