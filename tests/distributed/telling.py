"""Prints what a rank finds around it: ``telling.py [WORD ...]``."""

import json
import os
import sys

import beside

names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
print(
    json.dumps(
        {
            "arguments": sys.argv[1:],
            "name": __name__,
            "beside": beside.WORD,
            "threads": [os.environ.get(name) for name in names],
        }
    ),
    flush=True,
)
if "init" in sys.argv:
    import gradtape as gt

    gt.distributed.init()
if "early" in sys.argv and os.environ.get("PMI_RANK") == "1":
    sys.exit(4)
if "early" in sys.argv:
    import gradtape as gt

    gt.distributed.init()
