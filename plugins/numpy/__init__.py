"""The NumPy backend: arrays in host memory.

Beside the backend stand kernels that are quicker on NumPy than the portable ones of
``plugins.ops``, in modules that are named as the folders of ops there.
"""
