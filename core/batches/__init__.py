"""Batches: arrays with a hidden axis for examples, on which an op runs once for all of them.

It uses tensors. It provides ``Batched`` and helpers for batching rules; the ops ``HIDE`` and
``UNHIDE`` enter and leave a batch.
"""

from . import running as running
