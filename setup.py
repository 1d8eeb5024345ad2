"""Find the packages: the repository root is ``gradtape``, and two folders hold packages of it, too.

``namespaces/`` holds the packages of public names (``gradtape.nn``, ``gradtape.random``, ...): a
folder called ``random`` at the root would shadow Python's own module if Python starts there.
``extras/`` holds what the base works without (``gradtape.export``, ``gradtape.plot``, ...).
The guides are included for ``gradtape tutorial``.
"""

from pathlib import Path

from setuptools import find_packages, setup

SECOND_ROOTS = ("namespaces", "extras")
PACKAGES = find_packages(".", exclude=["docs*", "tests*", *(f"{root}*" for root in SECOND_ROOTS)])
ELSEWHERE = {
    name: f"{root}/{name.replace('.', '/')}"
    for root in SECOND_ROOTS
    for name in find_packages(root)
}

setup(
    script_name=Path(__file__).name,  # so that this file, at the root, is not packed as a module
    packages=[
        "gradtape",
        *(f"gradtape.{name}" for name in (*PACKAGES, *ELSEWHERE, "docs.guides")),
    ],
    package_dir={
        "gradtape": ".",
        **{f"gradtape.{name}": folder for name, folder in ELSEWHERE.items()},
    },
)
