"""Find the packages: the repository root is ``gradtape``; ``namespaces/`` has packages of it too.

A folder ``random`` at the root would hide Python's own module if Python starts there, so the
packages of public names (``gradtape.nn``, ``gradtape.random``, ...) are one level down. The guides
are packed for ``gradtape tutorial``.
"""

from pathlib import Path

from setuptools import find_packages, setup

NAMESPACES = find_packages("namespaces")
PACKAGES = [*find_packages(".", exclude=["docs*", "namespaces*", "tests*"]), "docs.guides"]

setup(
    script_name=Path(__file__).name,  # keeps this file out of the package, whose root it is in
    packages=["gradtape", *(f"gradtape.{name}" for name in (*PACKAGES, *NAMESPACES))],
    package_dir={
        "gradtape": ".",
        **{f"gradtape.{name}": f"namespaces/{name.replace('.', '/')}" for name in NAMESPACES},
    },
)
