"""Makes the helpers of this folder importable, and property tests repeatable where CI runs them."""

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# on CI the same examples every time; elsewhere new ones, so that somebody finds what is left
settings.register_profile("gradtape", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("gradtape")
