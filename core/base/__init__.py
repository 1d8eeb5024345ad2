"""The lowest layer: dtypes, shapes, containers, the context of running code, and ops by name.

Imports only the errors. What it needs from the packages above it is looked up when it is used,
through ``table``.
"""
