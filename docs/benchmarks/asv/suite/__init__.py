"""Benchmarks over commits: the programs of docs/benchmarks, compared with NumPy, for asv.

The programs are those of this checkout, whatever commit of gradtape they run with.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
