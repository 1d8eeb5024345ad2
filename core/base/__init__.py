"""The ground: dtypes, shapes, containers, what surrounds running code, and ops found by name.

Stands on nothing but errors. What rooms above must do for those below is found late, through
``table``.
"""
