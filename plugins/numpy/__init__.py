"""The NumPy backend: arrays in host memory.

The kernels here are faster on NumPy than the portable ones of ``plugins.ops``. Their modules have
the names of its folders.
"""
