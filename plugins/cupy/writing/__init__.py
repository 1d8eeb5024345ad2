"""Kernels in CUDA C: their texts, for compiled programs, eager ops and rules alike.

``formulas`` has steps as expressions, ``source`` what all texts share, and ``places`` the memory of
values. ``groups`` writes a group of steps as kernels. ``fusing`` decides which groups become one
kernel, ``slices`` cuts them into what blocks of threads compute independently, and ``blocks``
writes such a kernel. ``joins`` concatenates arrays, and ``elements`` is for rules that write
kernels.
"""
