"""The table of all ops' samples."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "ops"))
