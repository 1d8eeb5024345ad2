"""The commands that ship with gradtape, as a plugin, and what `gradtape doctor` lists for all.

Their modules are light: what a command computes with is imported when it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from ..core.extend import VARIABLES, hookimpl
from .commands import add_demo, add_doctor, add_plugin, add_plugins
from .files import add_diff, add_inspect, add_verify
from .scripts import add_train
from .tutorial import add_tutorial


@hookimpl(trylast=True)
def gradtape_commands() -> dict[str, Callable[[argparse.ArgumentParser], None]]:
    """Provide the commands, in the order of ``gradtape --help``."""
    return {
        "plugins": add_plugins,
        "plugin": add_plugin,
        "doctor": add_doctor,
        "train": add_train,
        "demo": add_demo,
        "inspect": add_inspect,
        "verify": add_verify,
        "diff": add_diff,
        "tutorial": add_tutorial,
    }


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], Mapping[str, Any]]]:
    """List libraries and settings that belong to no other plugin."""
    packages = {"pluggy": "pluggy", "matplotlib": "matplotlib", "sklearn": "scikit-learn"}
    return {"gradtape": lambda: {"packages": packages, "variables": list(VARIABLES)}}
