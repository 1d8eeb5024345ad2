"""Modules: objects that find their variables, submodules and traced functions.

It uses functions and tensors, and provides ``Module``.
"""
