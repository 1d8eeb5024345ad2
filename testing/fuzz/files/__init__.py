"""``files``: saved files, changed as damage or an attacker would change them, and read again."""

from .command import add_arguments, run

__all__ = ["add_arguments", "run"]
