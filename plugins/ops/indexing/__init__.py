"""Ops that pick, find, order and replace elements.

``getitem`` and ``take`` pick by position, ``selection`` by a condition; ``sorting`` and ``sets``
order and compare values. ``scattering`` and ``batched_index`` hold what their rules share.
"""
