"""Ops that pick, find, order and replace elements.

``getitem`` and ``take`` pick by position, ``selection`` by a condition; ``sorting`` and ``sets``
order and compare values. ``batched_index`` is what their batching rules share.
"""
