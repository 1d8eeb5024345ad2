"""Data sets: the handwritten digits, and those of plugins by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.extend import hookimpl, registry


def load(name: str, **options: Any) -> Any:
    """Return a data set by name.

    Parameters
    ----------
    name
        ``"digits"`` (:func:`gradtape.datasets.load_digits`), or the name that a plugin gives with
        the hook ``gradtape_datasets``, such as ``"acme::faces"``.
    options
        Arguments of the function that loads this data set.

    Returns
    -------
    object
        What this function returns; for ``"digits"``, ``(x_train, y_train), (x_test, y_test)``.

    Raises
    ------
    UnknownName
        If no plugin provides it; the message lists near names.
    PluginError
        If several plugins provide it, and none takes precedence.

    Examples
    --------
    >>> (x_train, y_train), _ = gt.datasets.load("digits")
    >>> x_train.shape, y_train.shape
    ((1437, 64), (1437,))
    """
    return registry().provided("dataset", name)(**options)


# -- the digits: the UCI set of 1,797 images of 8x8 pixels -----------------------------------------


Array = NDArray[Any]

FILE = Path(__file__).parent / "digits.h5"
TEST = 360


def load_digits() -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return the handwritten digits as NumPy arrays, split into training and test images.

    The images are those of the test set of the UCI Optical Recognition of Handwritten Digits set,
    licence CC BY 4.0 [1]_.

    Returns
    -------
    x_train : float32, shape (1437, 64)
        Grey values from 0 (paper) to 1 (ink), row by row: ``x.reshape(-1, 8, 8)`` gives images.
    y_train : int64, shape (1437,)
        The digits, 0 to 9.
    x_test : float32, shape (360, 64)
        Grey values, as in ``x_train``.
    y_test : int64, shape (360,)
        The digits. All four come as ``(x_train, y_train), (x_test, y_test)``.

    Raises
    ------
    FileNotFoundError
        If the package was installed without its data file.

    Notes
    -----
    The file keeps the order in which the images were collected, writer by writer. The split is a
    fixed permutation of it, the same on every machine and with every version of NumPy: images are
    sorted by ``index * 769 % 1797``, and the last 360 are the test images.

    References
    ----------
    .. [1] E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
       Learning Repository, 1998, doi:10.24432/C50P49

    Examples
    --------
    >>> (x_train, y_train), (x_test, y_test) = gt.datasets.load_digits()
    >>> x_train.shape, y_train.shape, x_test.shape
    ((1437, 64), (1437,), (360, 64))
    """
    import h5py  # slow to import, and needed only here

    if not FILE.is_file():
        raise FileNotFoundError(f"{FILE} is missing; install gradtape again to restore it")
    with h5py.File(FILE, "r") as file:
        images, labels = file["images"][()], file["labels"][()]
    count = len(labels)
    # 769 and 1797 have no common factor, so this is a permutation; it scatters neighbours widely
    order = np.argsort(np.arange(count) * 769 % count)
    x = images.reshape(count, -1).astype(np.float32)[order] / np.float32(16)
    y = labels.astype(np.int64)[order]
    return (x[:-TEST], y[:-TEST]), (x[-TEST:], y[-TEST:])


@hookimpl(trylast=True)
def gradtape_datasets() -> dict[str, Callable[..., Any]]:
    """Provide the handwritten digits."""
    return {"digits": load_digits}
