"""The planned executor: programs on NumPy with planned memory, grouped and packed steps.

A program goes through these modules, in order. ``tracing`` fixes unknown sizes of its inputs.
``lowering`` turns ops into steps (by ``rules`` and ``algebra``, or by tracing portable kernels).
``packing`` finds updates of the same form, ``grouping`` combines elementwise steps, ``stacking``
combines calls. ``emission`` finds the ``lifetimes`` of values, gives them ``memory``, and writes a
Python function. It writes the bodies of scans as loops (``looping``), and computes the parts of
joined arrays in place (``joining``). ``steps`` has the data structures of all of these.
``compiled`` runs groups as loops that LLVM compiles, instead of as ufuncs.

Variables are read when the function starts, and change after its last line. No array that other
code may hold is written to: buffers belong to one call, and results and unpacked updates are always
new. Packed variables alternate between two sets of arrays; a set is written to only if no other
code still refers to it.
refers to it any more.
"""

from ..fused.executor import fused
from .plan import Plans, planned

__all__ = ["Plans", "fused", "planned"]
