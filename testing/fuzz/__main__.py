"""The command line as ``python -m gradtape.testing.fuzz``."""

import sys

from .commands import main

if __name__ == "__main__":
    sys.exit(main())
