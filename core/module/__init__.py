"""Modules: objects that find their variables, submodules and traced functions.

Stands on functions and tensors. Hands out ``Module``.
"""
