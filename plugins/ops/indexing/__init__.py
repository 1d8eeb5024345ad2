"""Ops that select, find, order and replace elements.

``getitem`` and ``take`` select by position, ``selection`` by a condition; ``sorting`` and ``sets``
order and compare values. Their batching rules share ``batched_index``.
"""
