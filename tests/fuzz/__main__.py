"""The command line as ``python tests/fuzz``."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # where Python finds the package ``fuzz``

from fuzz.commands import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
