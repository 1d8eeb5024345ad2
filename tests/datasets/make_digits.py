"""Make ``digits.h5`` from the copy of the data that scikit-learn ships.

It needs scikit-learn: ``python tests/datasets/make_digits.py extras/datasets/digits.h5``.
"""

from __future__ import annotations

import sys

import h5py
import numpy as np
from sklearn.datasets import load_digits

ATTRIBUTES = {
    "title": "Optical Recognition of Handwritten Digits: 1,797 images of 8x8 pixels",
    "source": "https://doi.org/10.24432/C50P49 (UCI Machine Learning Repository; its test set)",
    "made_from": "sklearn.datasets.load_digits of scikit-learn",
    "licence": "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/",
    "citation": (
        "E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, "
        "UCI Machine Learning Repository, 1998, doi:10.24432/C50P49"
    ),
    "changes": "stored as unsigned bytes in HDF5; values and order unchanged",
}


def main(path: str) -> None:
    """Write the images and labels to ``path``."""
    digits = load_digits()
    with h5py.File(path, "w", libver=("earliest", "v110")) as file:
        file.attrs.update(ATTRIBUTES)
        for name, values, meaning in (
            (
                "images",
                digits.images,
                "grey value from 0 (paper) to 16 (ink): (image, row, column)",
            ),
            ("labels", digits.target, "the digit, 0 to 9"),
        ):
            data = values.astype(np.uint8)
            assert np.array_equal(data, values)
            dataset = file.create_dataset(
                name, data=data, compression="gzip", compression_opts=9, shuffle=False
            )
            dataset.attrs["meaning"] = meaning


if __name__ == "__main__":
    main(sys.argv[1])
