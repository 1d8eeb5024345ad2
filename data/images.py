"""Images as arrays, and batches of images that are changed at random."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.extend import warn_user

__all__ = ["ImageDataGenerator", "array_to_img", "img_to_array", "load_img", "save_img"]

_MODES = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}
_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff")
_Array = np.ndarray[Any, Any]


def _pillow(what: str) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f"{what} needs Pillow: pip install pillow") from error
    return Image


def _check_format(what: str, data_format: str | None) -> bool:
    """Return whether channels come first."""
    if data_format not in (None, "channels_last", "channels_first"):
        raise ValueError(
            f"{what}: data_format is 'channels_last' or 'channels_first', got {data_format!r}"
        )
    return data_format == "channels_first"


def load_img(
    path: Any,
    color_mode: str = "rgb",
    target_size: Sequence[int] | None = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Any:
    """Return the image in a file, as an object of Pillow.

    Parameters
    ----------
    path
        A path, or a file that is open for reading.
    color_mode
        ``"rgb"``, ``"rgba"`` or ``"grayscale"``.
    target_size
        The height and width to resize it to.
    interpolation
        ``"nearest"``, ``"bilinear"``, ``"bicubic"``, ``"lanczos"``, ``"box"`` or ``"hamming"``.
    keep_aspect_ratio
        Whether to crop the middle to the aspect ratio of ``target_size`` first.
    """
    images = _pillow("load_img")
    if color_mode not in _MODES:
        raise ValueError(f"load_img: color_mode is one of {list(_MODES)}, got {color_mode!r}")
    data = path.read() if hasattr(path, "read") else Path(path).read_bytes()
    image = images.open(io.BytesIO(data))
    if color_mode != "grayscale" or image.mode not in ("I;16", "I"):  # which have more than 8 bits
        image = image.convert(_MODES[color_mode])
    if target_size is None:
        return image
    way = getattr(images.Resampling, interpolation.upper(), None)
    if way is None:
        raise ValueError(f"load_img: unknown interpolation {interpolation!r}")
    height, width = target_size[:2]
    if not keep_aspect_ratio:
        return image if image.size == (width, height) else image.resize((width, height), way)
    high = min(image.height, image.width * height // width)
    wide = min(image.width, image.height * width // height)
    left, top = (image.width - wide) // 2, (image.height - high) // 2
    return image.resize((width, height), way, (left, top, left + wide, top + high))


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> _Array:
    """Return an image as an array of height, width and channels.

    Parameters
    ----------
    img
        An object of Pillow, or an array of 2 or 3 axes.
    data_format
        ``"channels_first"`` puts the channels first.
    dtype
        The dtype, float32 by default.

    Examples
    --------
    >>> gt.data.img_to_array(np.zeros((4, 5))).shape
    (4, 5, 1)
    """
    first = _check_format("img_to_array", data_format)
    found = np.asarray(img, dtype or "float32")
    if found.ndim not in (2, 3):
        raise ValueError(f"img_to_array: an image has 2 or 3 axes, got shape {found.shape}")
    if found.ndim == 2:
        return found[None] if first else found[..., None]
    return np.moveaxis(found, -1, 0) if first and hasattr(img, "getbands") else found


def array_to_img(
    x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None
) -> Any:
    """Return an array of height, width and 1, 3 or 4 channels as an image of Pillow.

    Parameters
    ----------
    x
        An array or a tensor.
    data_format
        ``"channels_first"`` if the channels are first.
    scale
        Whether to map the smallest value to 0 and the largest one to 255.
    dtype
        The dtype to compute in, float32 by default.
    """
    images = _pillow("array_to_img")
    x = np.asarray(x, dtype or "float32")
    if x.ndim != 3:
        raise ValueError(f"array_to_img: an image has 3 axes, got shape {x.shape}")
    x = np.moveaxis(x, 0, -1) if _check_format("array_to_img", data_format) else x
    if scale:
        x = x - np.min(x)
        x = x / (np.max(x) or 1.0) * 255
    if x.shape[-1] not in (1, 3, 4):
        raise ValueError(f"array_to_img: an image has 1, 3 or 4 channels, got shape {x.shape}")
    if x.shape[-1] == 1:
        deep = np.max(x) > 255
        return images.fromarray(x[..., 0].astype("int32" if deep else "uint8"))
    return images.fromarray(x.astype("uint8"))


def save_img(
    path: Any,
    x: Any,
    data_format: str | None = None,
    file_format: str | None = None,
    scale: bool = True,
    **options: Any,
) -> None:
    """Write an array as an image.

    Parameters
    ----------
    path
        A path, or an open file.
    x, data_format, scale
        As for :func:`array_to_img`.
    file_format
        The format, by default that of the path's suffix.
    options
        Those of Pillow for the format.
    """
    image = array_to_img(x, data_format, scale)
    if image.mode == "RGBA" and file_format in ("jpg", "jpeg"):
        image = image.convert("RGB")
    image.save(path, format=file_format, **options)


# -- random changes -------------------------------------------------------------------------------


def _moved(image: _Array, matrix: _Array, fill_mode: str, cval: float) -> _Array:
    """Return an image whose pixel at p is the original's at ``matrix @ p``, interpolated."""
    rows, columns = image.shape[:2]
    grid = np.stack([*np.mgrid[:rows, :columns].astype("float64"), np.ones((rows, columns))])
    places = np.tensordot(matrix[:2], grid, 1)
    if fill_mode == "constant":
        image = np.pad(image, ((1, 1), (1, 1), (0, 0)), constant_values=cval)
        places, rows, columns = places + 1, rows + 2, columns + 2
    parts = []
    for place, size in zip(places, (rows, columns)):
        if fill_mode in ("nearest", "constant"):
            place = np.clip(place, 0, size - 1)
        low = np.floor(place)
        share = place - low
        ends = [low.astype(int), low.astype(int) + 1]
        if fill_mode == "wrap":
            ends = [end % size for end in ends]
        elif fill_mode == "reflect":  # the edge is repeated
            around = [end % (2 * size) for end in ends]
            ends = [np.where(end < size, end, 2 * size - 1 - end) for end in around]
        else:
            ends = [np.clip(end, 0, size - 1) for end in ends]
        parts.append(((ends[0], 1 - share), (ends[1], share)))
    found = np.zeros((*places.shape[1:], image.shape[-1]))
    for row, much in parts[0]:
        for column, part in parts[1]:
            found += (much * part)[..., None] * image[row, column]
    return found.astype(image.dtype)


class ImageDataGenerator:
    """Batches of images that are scaled, and changed at random.

    The draws come from NumPy's global generator, so ``np.random.seed`` repeats them.

    Parameters
    ----------
    featurewise_center, featurewise_std_normalization
        Whether to subtract the mean of the images, and divide by their standard deviation, per
        channel; :meth:`fit` computes both.
    samplewise_center, samplewise_std_normalization
        The same for each image by itself.
    rotation_range
        The largest angle, in degrees.
    width_shift_range, height_shift_range
        The largest shift: a part of the size below 1, otherwise pixels. An integer ``n`` stands for
        whole pixels, fewer than ``n``. Or a list to choose from.
    brightness_range
        The smallest and largest factor; images then have values from 0 to 255.
    shear_range
        The largest angle, in degrees.
    zoom_range
        The smallest and largest factor, or a number ``z`` for ``1 - z`` to ``1 + z``.
    channel_shift_range
        The largest number to add to all values.
    fill_mode, cval
        What is beyond the edges: ``"nearest"``, ``"reflect"``, ``"wrap"``, or ``"constant"``, which
        is ``cval``.
    horizontal_flip, vertical_flip
        Whether to mirror half of the images.
    rescale
        A factor for all values.
    preprocessing_function
        A function of an image, before ``rescale``.
    validation_split
        The part of the images that ``subset="validation"`` selects.
    dtype
        The dtype, float32 by default.

    Raises
    ------
    ValueError
        If a setting is unknown.

    Examples
    --------
    >>> made = gt.data.ImageDataGenerator(rescale=1 / 255, horizontal_flip=True)
    >>> x, y = next(made.flow(np.ones((5, 4, 4, 3)), np.arange(5), batch_size=2))
    >>> x.shape, y.shape
    ((2, 4, 4, 3), (2,))
    """

    def __init__(
        self,
        featurewise_center: bool = False,
        samplewise_center: bool = False,
        featurewise_std_normalization: bool = False,
        samplewise_std_normalization: bool = False,
        zca_whitening: bool = False,
        zca_epsilon: float = 1e-6,
        rotation_range: float = 0,
        width_shift_range: Any = 0.0,
        height_shift_range: Any = 0.0,
        brightness_range: Sequence[float] | None = None,
        shear_range: float = 0.0,
        zoom_range: Any = 0.0,
        channel_shift_range: float = 0.0,
        fill_mode: str = "nearest",
        cval: float = 0.0,
        horizontal_flip: bool = False,
        vertical_flip: bool = False,
        rescale: float | None = None,
        preprocessing_function: Callable[[Any], Any] | None = None,
        data_format: str | None = None,
        validation_split: float = 0.0,
        dtype: Any = None,
    ) -> None:
        if zca_whitening or _check_format("ImageDataGenerator", data_format):
            raise ValueError(
                "ImageDataGenerator: zca_whitening and channels_first are not supported: whiten "
                "the array yourself, and put the channels last"
            )
        if fill_mode not in ("nearest", "constant", "reflect", "wrap"):
            raise ValueError(f"ImageDataGenerator: unknown fill_mode {fill_mode!r}")
        if not 0.0 <= validation_split < 1.0:
            raise ValueError(
                f"ImageDataGenerator: validation_split is below 1, got {validation_split!r}"
            )
        self.featurewise_center, self.samplewise_center = featurewise_center, samplewise_center
        self.featurewise_std_normalization = featurewise_std_normalization
        self.samplewise_std_normalization = samplewise_std_normalization
        self.rotation_range, self.shear_range = rotation_range, shear_range
        self.shift_ranges = height_shift_range, width_shift_range
        self.brightness_range, self.channel_shift_range = brightness_range, channel_shift_range
        single = np.ndim(zoom_range) == 0
        self.zoom_range = (1 - zoom_range, 1 + zoom_range) if single else tuple(zoom_range)
        self.fill_mode, self.cval, self.rescale = fill_mode, cval, rescale
        self.horizontal_flip, self.vertical_flip = horizontal_flip, vertical_flip
        self.preprocessing_function = preprocessing_function
        self.validation_split, self.dtype = validation_split, np.dtype(dtype or "float32")
        self.mean: Any = None
        self.std: Any = None

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Compute the mean and the standard deviation of images."""
        x = np.array(x, self.dtype)
        if augment:
            if seed is not None:
                np.random.seed(seed)  # noqa: NPY002 - as in Keras
            x = np.stack([self.random_transform(image) for _ in range(rounds) for image in x])
        if self.featurewise_center:
            self.mean = np.mean(x, (0, 1, 2))
            x = x - self.mean
        if self.featurewise_std_normalization:
            self.std = np.std(x, (0, 1, 2))

    def standardize(self, x: Any) -> _Array:
        """Return an image after the changes that are not random."""
        x = np.asarray(x, self.dtype)
        if self.preprocessing_function is not None:
            x = np.asarray(self.preprocessing_function(x))
        x = x * self.rescale if self.rescale else x
        if self.samplewise_center:
            x = x - np.mean(x, keepdims=True)
        if self.samplewise_std_normalization:
            x = x / (np.std(x, keepdims=True) + 1e-6)
        for wanted, known in (
            (self.featurewise_center, self.mean),
            (self.featurewise_std_normalization, self.std),
        ):
            if wanted and known is None:
                warn_user("ImageDataGenerator: call fit(x) first, for the mean of x", UserWarning)
        x = x - self.mean if self.mean is not None else x
        return (x / (self.std + 1e-6) if self.std is not None else x).astype(self.dtype)

    def random_transform(self, x: Any, seed: int | None = None) -> _Array:
        """Return an image changed at random."""
        if seed is not None:
            np.random.seed(seed)  # noqa: NPY002 - as in Keras
        x, draw = np.asarray(x), np.random.uniform
        matrix = np.eye(3)
        if self.rotation_range:
            angle = np.deg2rad(draw(-self.rotation_range, self.rotation_range))
            sine, cosine = np.sin(angle), np.cos(angle)
            matrix = matrix @ [[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]]
        shifts = [_shift(given, n) for given, n in zip(self.shift_ranges, x.shape)]
        matrix = matrix @ [[1, 0, shifts[0]], [0, 1, shifts[1]], [0, 0, 1]]
        if self.shear_range:
            angle = np.deg2rad(draw(-self.shear_range, self.shear_range))
            matrix = matrix @ [[1, -np.sin(angle), 0], [0, np.cos(angle), 0], [0, 0, 1]]
        if self.zoom_range != (1, 1):
            low, high = self.zoom_range
            matrix = matrix @ np.diag([*draw(low, high, 2), 1])
        if not np.array_equal(matrix, np.eye(3)):
            middle, back = np.eye(3), np.eye(3)
            middle[:2, 2] = np.array(x.shape[:2]) / 2 - 0.5
            back[:2, 2] = -middle[:2, 2]
            x = _moved(x, middle @ matrix @ back, self.fill_mode, self.cval)
        if self.channel_shift_range:
            more = draw(-self.channel_shift_range, self.channel_shift_range)
            x = np.clip(x + more, x.min(), x.max())
        if self.horizontal_flip and np.random.random() < 0.5:  # noqa: NPY002
            x = x[:, ::-1]
        if self.vertical_flip and np.random.random() < 0.5:  # noqa: NPY002
            x = x[::-1]
        if self.brightness_range is not None:
            low, high = self.brightness_range
            x = np.clip(np.trunc(x) * draw(low, high), 0, 255)
        return x

    def flow(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int | None = None,
        subset: str | None = None,
    ) -> ImageBatches:
        """Return batches of images in an array, with labels and weights if these are given."""
        x = np.asarray(x)
        if x.ndim != 4:
            raise ValueError(f"ImageDataGenerator.flow: images have 4 axes, got shape {x.shape}")
        given = [np.asarray(part) for part in (y, sample_weight) if part is not None]
        if any(len(part) != len(x) for part in given):
            raise ValueError("ImageDataGenerator.flow: x, y and weights have different lengths")
        kept = np.flatnonzero(self._is_chosen(np.arange(len(x)), len(x), subset))
        x, given = x[kept], [part[kept] for part in given]
        return ImageBatches(self, x.__getitem__, len(x), given, batch_size, shuffle, seed)

    def flow_from_directory(
        self,
        directory: Any,
        target_size: Sequence[int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
    ) -> ImageBatches:
        """Return batches of the images in a folder, which has one folder for each class.

        ``class_mode`` is ``"categorical"`` for labels in one-hot vectors, ``"binary"`` or
        ``"sparse"`` for numbers, ``"input"`` for the images, or None for no labels.
        """
        modes = ("categorical", "binary", "sparse", "input", None)
        if class_mode not in modes:
            raise ValueError(f"flow_from_directory: class_mode is one of {modes}")
        root = Path(directory)
        names = sorted(x.name for x in root.iterdir() if x.is_dir()) if classes is None else classes
        paths, labels = [], []
        for label, name in enumerate(names):
            inside = sorted(
                Path(folder, file)
                for folder, _, files in os.walk(root / name)
                for file in files
                if file.lower().endswith(_SUFFIXES)
            )
            kept = self._is_chosen(np.arange(len(inside)), len(inside), subset)
            paths += [path for path, chosen in zip(inside, kept) if chosen]
            labels += [label] * int(kept.sum())
        print(f"Found {len(paths)} images belonging to {len(names)} classes.")

        def image(i: int) -> _Array:
            size = tuple(target_size)
            found = load_img(paths[i], color_mode, size, interpolation, keep_aspect_ratio)
            return img_to_array(found, dtype=self.dtype)

        numbers: Any = np.array(labels, "int32")
        coded = {"categorical": np.eye(len(names), dtype=self.dtype)[numbers]}
        coded |= {"sparse": numbers.astype(self.dtype), "binary": numbers.astype(self.dtype)}
        given = [coded[class_mode]] if class_mode in coded else []
        found = ImageBatches(self, image, len(paths), given, batch_size, shuffle, seed)
        found.labels_are_images = class_mode == "input"
        found.class_indices = {name: i for i, name in enumerate(names)}
        found.classes, found.num_classes = numbers, len(names)
        found.filepaths = [str(path) for path in paths]
        found.filenames = [str(path.relative_to(root)) for path in paths]
        found.image_shape = (*target_size, len(_MODES[color_mode]))
        return found

    def _is_chosen(self, index: _Array, count: int, subset: str | None) -> _Array:
        held = int(self.validation_split * count)
        if subset is None:
            return np.ones(count, bool)
        if subset not in ("training", "validation"):
            raise ValueError(f"subset is 'training' or 'validation', got {subset!r}")
        return (index < held) == (subset == "validation")


def _shift(given: Any, size: int) -> float:
    """Return a random shift in pixels."""
    scale = size if np.max(given) < 1 else 1
    if np.ndim(given) or (given and isinstance(given, (int, np.integer))):
        # an integer n stands for the whole pixels below n, as in Keras
        return float(np.random.choice(given) * np.random.choice([-1, 1]) * scale)  # noqa: NPY002
    return float(np.random.uniform(-given, given) * scale)  # noqa: NPY002


class ImageBatches(Iterator[Any]):
    """The batches of :class:`ImageDataGenerator`, without end; ``len`` is the number in an epoch.

    Attributes
    ----------
    n, samples
        The number of images.
    class_indices, classes, filenames, filepaths
        Of images in a folder: the number of each class, that of each image, and its path.
    """

    class_indices: dict[str, int]
    classes: _Array
    filenames: list[str]
    filepaths: list[str]
    image_shape: tuple[int, ...]
    num_classes: int
    labels_are_images = False

    def __init__(
        self,
        made_by: ImageDataGenerator,
        read: Callable[[int], Any],
        count: int,
        given: Sequence[_Array],
        batch_size: int,
        shuffle: bool,
        seed: int | None,
    ) -> None:
        self.image_data_generator, self._read, self._given = made_by, read, given
        self.n = self.samples = count
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.batch_index = self.total_batches_seen = 0
        self.on_epoch_end()

    def on_epoch_end(self) -> None:
        """Choose the order of the next epoch."""
        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)  # noqa: NPY002 - as in Keras
        order = np.random.permutation(self.n) if self.shuffle else np.arange(self.n)  # noqa: NPY002
        self.index_array = order

    def reset(self) -> None:
        """Begin with the first batch."""
        self.batch_index = 0

    def __len__(self) -> int:
        return -(-self.n // self.batch_size)

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"there is no batch {index}: there are {len(self)}")
        chosen = self.index_array[index * self.batch_size : (index + 1) * self.batch_size]
        self.total_batches_seen += 1
        made_by = self.image_data_generator
        images = [
            made_by.standardize(made_by.random_transform(np.asarray(self._read(i), made_by.dtype)))
            for i in chosen
        ]
        x = np.stack(images)
        if self.labels_are_images:
            return x, x.copy()
        return (x, *(part[chosen] for part in self._given)) if self._given else x

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self.n:
            raise StopIteration
        found = self[self.batch_index]
        self.batch_index += 1
        if self.batch_index == len(self):
            self.batch_index = 0
            self.on_epoch_end()
        return found
