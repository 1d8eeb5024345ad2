"""Find the packages: the repository root is ``gradtape``, and ``namespaces/`` holds packages of it.

A folder called ``random`` at the root would hide Python's own module wherever Python starts there,
so the packages of public names (``gradtape.nn``, ``gradtape.random``, ...) stand one level down.
The guides are packed for ``gradtape tutorial``.
"""

from pathlib import Path

from setuptools import find_packages, setup

NAMESPACES = find_packages("namespaces")
ROOMS = [*find_packages(".", exclude=["docs*", "namespaces*", "tests*"]), "docs.guides"]

setup(
    script_name=Path(__file__).name,  # so that it is not packed itself, being at the root
    packages=["gradtape", *(f"gradtape.{name}" for name in (*ROOMS, *NAMESPACES))],
    package_dir={
        "gradtape": ".",
        **{f"gradtape.{name}": f"namespaces/{name.replace('.', '/')}" for name in NAMESPACES},
    },
)
