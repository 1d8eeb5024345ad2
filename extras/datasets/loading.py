"""``load``: data sets by name, from this package or from a plugin."""

from __future__ import annotations

from typing import Any

from ..core.extend import registry


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
