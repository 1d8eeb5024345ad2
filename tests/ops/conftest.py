"""Makes the tables of this folder importable: ``from table import SAMPLES``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
