"""Kernels in CUDA C: their texts, for compiled programs, eager ops and rules alike.

``formulas`` has steps as expressions, ``source`` what all texts share, and ``places`` the memory of
values. ``groups`` writes a group of steps as kernels. ``fusing`` decides which groups become one
kernel, ``slices`` cuts them into what blocks of threads compute independently, and ``blocks``
writes such a kernel. ``joins`` concatenates arrays, and ``elements`` is for rules that write
kernels.

Other plugins may use these names, in rules that they return from ``gradtape_lowerings`` for the
target ``"cupy"``. :func:`written` adds a step whose kernels the rule writes itself: with a
:class:`Writer`, which reads inputs through views, and :func:`indices` and :func:`unravelled` for
the positions of elements; or as any :class:`KernelLaunch` of ``BLOCK`` threads in each block.
"""

from __future__ import annotations

from .elements import Writer as Writer
from .elements import indices as indices
from .elements import unravelled as unravelled
from .elements import written as written
from .source import BLOCK as BLOCK
from .source import KernelLaunch as KernelLaunch
