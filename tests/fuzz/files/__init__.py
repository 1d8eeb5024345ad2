"""``files``: saved files, changed by damage or as an attacker would, and read again."""

from fuzz.files.command import add_arguments, run

__all__ = ["add_arguments", "run"]
