"""Images: sizes against sums by hand and against SciPy, colours against Python's, and measures."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

import gradtape as gt

RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(0.05, 0.95, (2, 5, 7, 3))
METHODS = ("area", "bicubic", "bilinear", "gaussian", "lanczos3", "lanczos5", "mitchellcubic")


def by_hand(x, size, axis, method, antialias):
    """Return an axis in another size, pixel by pixel."""
    kernels = {
        "bilinear": (1.0, lambda d: max(0.0, 1.0 - d)),
        "bicubic": (
            2.0,
            lambda d: (
                (1.5 * d - 2.5) * d * d + 1
                if d <= 1
                else ((-0.5 * d + 2.5) * d - 4) * d + 2
                if d < 2
                else 0.0
            ),
        ),
        "lanczos3": (3.0, lambda d: np.sinc(d) * np.sinc(d / 3) if d <= 3 else 0.0),
    }
    _, kernel = kernels[method]
    x = np.moveaxis(x, axis, 0)
    scale = len(x) / size
    wide = max(scale, 1.0) if antialias else 1.0
    rows = []
    for i in range(size):
        centre = (i + 0.5) * scale
        weights = np.array([kernel(abs(j + 0.5 - centre) / wide) for j in range(len(x))])
        rows.append(np.tensordot(weights / weights.sum(), x, 1))
    return np.moveaxis(np.stack(rows), 0, axis)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("size", [(10, 14), (3, 4), (5, 9), (1, 1)])
@pytest.mark.parametrize("method", ["bilinear", "bicubic", "lanczos3"])
def test_pixels_are_means_of_those_beside_them(method, size, antialias) -> None:
    found = gt.image.resize(IMAGES, size, method, antialias=antialias)
    wanted = by_hand(by_hand(IMAGES, size[0], 1, method, antialias), size[1], 2, method, antialias)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_known_values_of_a_smaller_identity() -> None:
    found = gt.image.resize(gt.eye(5)[..., None], (3, 5))[..., 0]
    wanted = [[2 / 3, 1 / 3, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1 / 3, 2 / 3]]
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("method", [*METHODS, "nearest"])
def test_every_method_keeps_a_constant_and_the_size_that_there_is(method) -> None:
    plain = np.full((4, 6, 1), 3.0)
    for size in ((7, 9), (2, 2), (4, 6)):
        np.testing.assert_allclose(gt.image.resize(plain, size, method), np.full((*size, 1), 3.0))
    np.testing.assert_array_equal(gt.image.resize(IMAGES, (5, 7), method), IMAGES)


def test_areas_are_means_of_blocks_and_of_their_parts() -> None:
    x = np.arange(16.0).reshape(4, 4, 1)
    blocks = x.reshape(2, 2, 2, 2).mean((1, 3))[..., None]
    np.testing.assert_allclose(gt.image.resize(x, (2, 2), "area"), blocks)
    row = np.array([0.0, 3.0, 6.0])[None, :, None]
    np.testing.assert_allclose(gt.image.resize(row, (1, 2), "area")[0, :, 0], [1.0, 5.0])


def test_nearest_keeps_integers_and_others_become_floats() -> None:
    x = np.arange(4, dtype="uint8").reshape(2, 2, 1)
    found = gt.image.resize(x, (4, 4), "nearest")
    assert found.dtype == np.uint8
    assert found[..., 0].tolist() == np.kron([[0, 1], [2, 3]], np.ones((2, 2))).tolist()
    assert gt.image.resize(x, (4, 4)).dtype == np.float32


@pytest.mark.parametrize("method", METHODS)
def test_resizing_has_gradients_and_runs_on_open_sizes(method) -> None:
    def resized(x):
        return gt.image.resize(x, (3, 9), method)

    gt.testing.check_gradients(resized, gt.constant(IMAGES[:1]))
    spec = gt.TensorSpec([None, None, None, 3], "float64")
    traced = gt.function(resized, input_signature=[spec])
    for x in (IMAGES, IMAGES[:, :4, 1:]):
        np.testing.assert_allclose(traced(x), resized(x), atol=1e-12)
    np.testing.assert_allclose(gt.vmap(resized)(IMAGES), resized(IMAGES), atol=1e-12)


def test_proportions_are_kept_inside_a_size_and_zeros_are_around() -> None:
    assert gt.image.resize(IMAGES, (4, 4), preserve_aspect_ratio=True).shape == (2, 3, 4, 3)
    framed = gt.image.resize_with_pad(np.ones((2, 4, 1)), 4, 4)
    assert framed[..., 0].tolist() == [[0] * 4, [1] * 4, [1] * 4, [0] * 4]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gt.image.resize(IMAGES, (2, 2), "cubic"), "method must be one of"),
        (lambda: gt.image.resize(np.ones((2, 2)), (2, 2)), "height, width, channels"),
        (lambda: gt.image.resize(IMAGES, (2, 2, 2)), "height and width"),
        (lambda: gt.image.crop_to_bounding_box(IMAGES, 0, 0, 9, 2), "extends beyond images of"),
        (lambda: gt.image.pad_to_bounding_box(IMAGES, 0, 0, 2, 9), "do not fit into"),
        (lambda: gt.image.central_crop(IMAGES, 0.0), "fraction must be in"),
        (lambda: gt.image.random_crop(IMAGES, (1, 9, 9, 3)), "does not fit into shape"),
        (lambda: gt.image.ssim(IMAGES, IMAGES, 1.0), "smaller than the window"),
        (lambda: gt.image.random_brightness(IMAGES, -1.0), "must not be negative"),
        (lambda: gt.image.random_contrast(IMAGES, 2.0, 1.0), "lower < upper"),
    ],
)
def test_what_means_nothing_is_refused(call, words) -> None:
    with pytest.raises(ValueError, match=words):
        call()
    with pytest.raises(TypeError, match="do not convert to"):
        gt.image.convert_image_dtype(np.ones((1, 1, 1), "bool"), "float32")


def test_places() -> None:
    x = IMAGES
    same = np.testing.assert_array_equal
    same(gt.image.flip_left_right(x), x[:, :, ::-1])
    same(gt.image.flip_up_down(x), x[:, ::-1])
    same(gt.image.rot90(x), np.rot90(x, axes=(1, 2)))
    same(gt.image.transpose(x), x.swapaxes(1, 2))
    same(gt.image.crop_to_bounding_box(x, 1, 2, 3, 4), x[:, 1:4, 2:6])
    same(gt.image.central_crop(x[:, :4, :6], 0.5), x[:, 1:3, 1:5])
    same(
        gt.image.resize_with_crop_or_pad(x, 3, 9),
        np.pad(x[:, 1:4], [(0, 0)] * 2 + [(1, 1), (0, 0)]),
    )
    drawn = gt.image.random_flip_left_right(np.concatenate([x] * 20), gt.random.Generator(0))
    ways = {tuple(np.ravel(y.numpy())) for y in drawn}
    assert ways == {tuple(np.ravel(y)) for z in x for y in (z, z[:, ::-1])}
    part = gt.image.random_crop(x, (2, 2, 2, 3), gt.random.Generator(0)).numpy()
    assert any((x[:, i : i + 2, j : j + 2] == part).all() for i in range(4) for j in range(6))


def test_colours_are_those_of_python() -> None:
    pixels = IMAGES.reshape(-1, 3)
    hsv = np.array([colorsys.rgb_to_hsv(*pixel) for pixel in pixels]).reshape(IMAGES.shape)
    np.testing.assert_allclose(gt.image.rgb_to_hsv(IMAGES), hsv, atol=1e-12)
    np.testing.assert_allclose(gt.image.hsv_to_rgb(hsv), IMAGES, atol=1e-12)
    turned = [colorsys.hsv_to_rgb((h + 0.3) % 1.0, s, v) for h, s, v in hsv.reshape(-1, 3)]
    np.testing.assert_allclose(
        gt.image.adjust_hue(IMAGES, 0.3), np.reshape(turned, IMAGES.shape), atol=1e-12
    )
    weaker = [colorsys.hsv_to_rgb(h, s * 0.5, v) for h, s, v in hsv.reshape(-1, 3)]
    np.testing.assert_allclose(
        gt.image.adjust_saturation(IMAGES, 0.5), np.reshape(weaker, IMAGES.shape), atol=1e-12
    )


def test_brightness_contrast_and_their_kin() -> None:
    close = np.testing.assert_allclose
    close(gt.image.adjust_brightness(IMAGES, 0.1), IMAGES + 0.1)
    middle = IMAGES.mean((1, 2), keepdims=True)
    close(gt.image.adjust_contrast(IMAGES, 2.0), middle + 2 * (IMAGES - middle))
    close(gt.image.adjust_gamma(IMAGES, 2.0, 0.5), 0.5 * IMAGES**2)
    close(gt.image.rgb_to_grayscale(IMAGES)[..., 0], IMAGES @ [0.2989, 0.5870, 0.1140])
    assert gt.image.grayscale_to_rgb(IMAGES[..., :1]).shape == IMAGES.shape
    found = gt.image.per_image_standardization(IMAGES)
    close(gt.mean(found, (1, 2, 3)), [0, 0], atol=1e-12)
    close(gt.std(found, (1, 2, 3)), [1, 1])
    assert gt.image.per_image_standardization(np.full((2, 2, 1), 5.0)).tolist() == [[[0]] * 2] * 2
    bright = gt.image.adjust_brightness(np.uint8([[[250, 10, 0]]]), 0.1)
    assert bright.dtype == np.uint8
    assert bright.tolist() == [[[255, 35, 25]]]
    assert gt.image.convert_image_dtype([[[-1.0, 0.5, 2.0]]], "uint8", True).tolist() == [
        [[0, 127, 255]]
    ]
    assert gt.image.convert_image_dtype(np.uint16([[[65535]]]), "uint8").item() == 255


def test_measures() -> None:
    other = IMAGES + RNG.normal(0, 0.05, IMAGES.shape)
    error = ((IMAGES - other) ** 2).mean((1, 2, 3))
    np.testing.assert_allclose(gt.image.psnr(IMAGES, other, 2.0), 10 * np.log10(4.0 / error))
    down, right = gt.image.image_gradients(IMAGES)
    np.testing.assert_allclose(down[:, :-1], np.diff(IMAGES, axis=1))
    np.testing.assert_allclose(right[:, :, :-1], np.diff(IMAGES, axis=2))
    assert not down[:, -1].numpy().any()
    variation = sum(np.abs(np.diff(IMAGES, axis=axis)).sum((1, 2, 3)) for axis in (1, 2))
    np.testing.assert_allclose(gt.image.total_variation(IMAGES), variation)


def test_sobel_and_ssim_are_scipys_sums() -> None:
    ndimage = pytest.importorskip("scipy.ndimage", reason='pip install "gradtape[scipy]"')
    edges = gt.image.sobel_edges(IMAGES).numpy()
    for axis in (1, 2):
        wanted = ndimage.sobel(IMAGES[..., :1], axis, mode="mirror")
        smooth = ndimage.convolve1d(IMAGES[..., :1], [-1, 0, 1][::-1], axis, mode="mirror")
        wanted = ndimage.convolve1d(smooth, [1, 2, 1], 3 - axis, mode="mirror")
        np.testing.assert_allclose(edges[..., 0, axis - 1], wanted[..., 0], atol=1e-12)
    a, b = RNG.uniform(size=(2, 1, 16, 18, 1))
    weights = np.exp(-((np.arange(11) - 5.0) ** 2) / (2 * 1.5**2))
    weights /= weights.sum()

    def around(x):
        found = x[0, ..., 0]
        for axis in (0, 1):
            found = ndimage.convolve1d(found, weights, axis)
        return found[5:-5, 5:-5]

    mean_a, mean_b = around(a), around(b)
    both = around(a * b) - mean_a * mean_b
    each = around(a * a) - mean_a**2 + around(b * b) - mean_b**2
    c1, c2 = 0.01**2, 0.03**2
    wanted = (
        (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1) * (2 * both + c2) / (each + c2)
    )
    np.testing.assert_allclose(gt.image.ssim(a, b, 1.0), [wanted.mean()])
    np.testing.assert_allclose(gt.image.ssim(a, b, 1.0, return_index_map=True)[0], wanted)


@pytest.mark.parametrize(
    ("name", "channels"),
    [("rgb_to_grayscale", 1), ("rgb_to_hsv", 4), ("hsv_to_rgb", 2), ("grayscale_to_rgb", 3)],
)
def test_other_numbers_of_channels_are_refused(name: str, channels: int) -> None:
    words = rf"{name}: images must have shape \(..., height, width, \d\)"
    with pytest.raises(ValueError, match=words):
        getattr(gt.image, name)(gt.ones((2, 2, channels)))
