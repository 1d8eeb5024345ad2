"""All checks of as many ranks as there are, in one job: starting Python takes longer than most.

``checks.py [NAME ...]`` runs these alone.
"""

from __future__ import annotations

import sys

import digits
import disagreeing
import restarting
import steps
from checking import SIZE, tell

import training

#: By the number of ranks.
CHECKS = {
    1: [steps.data_parallel, digits.curves, restarting.resumed_pipeline],
    2: [*steps.CHECKS, *training.CHECKS, training.training, digits.curves, restarting.begun],
    4: [
        *steps.CHECKS,
        *training.CHECKS,
        digits.curves,
        restarting.resumed_arrays,
        disagreeing.disagreeing,
    ],
}

if __name__ == "__main__":
    named = {check.__name__: check for checks in CHECKS.values() for check in checks}
    tell([named[name] for name in sys.argv[1:]] or CHECKS[SIZE])
