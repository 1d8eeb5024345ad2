"""Batches: arrays with a hidden axis for examples, on which an op runs once for all of them.

Stands on tensors. Hands out ``Batched`` and what batching rules are written with; ``HIDE`` and
``UNHIDE`` lead into a batch and out of it.
"""
