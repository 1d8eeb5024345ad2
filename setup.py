"""Find the packages: the repository root is ``gradtape``; ``namespaces/`` has packages of it too.

A folder called ``random`` at the root would shadow Python's own module if Python starts there, so
the packages of public names (``gradtape.nn``, ``gradtape.random``, ...) are one level down. The
guides are included for ``gradtape tutorial``.
"""

from pathlib import Path

from setuptools import find_packages, setup

NAMESPACES = find_packages("namespaces")
PACKAGES = [*find_packages(".", exclude=["docs*", "namespaces*", "tests*"]), "docs.guides"]

setup(
    script_name=Path(__file__).name,  # so that this file, at the root, is not packed as a module
    packages=["gradtape", *(f"gradtape.{name}" for name in (*PACKAGES, *NAMESPACES))],
    package_dir={
        "gradtape": ".",
        **{f"gradtape.{name}": f"namespaces/{name.replace('.', '/')}" for name in NAMESPACES},
    },
)
