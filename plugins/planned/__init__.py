"""The planned executor: programs on NumPy with planned memory, grouped and packed steps.

What happens to a program, in order: ``tracing`` fixes what its inputs leave open; ``lowering``
makes steps of ops (by ``rules`` and ``algebra``, or what portable kernels do); ``packing`` finds
updates of one form; ``grouping`` puts elementwise steps together; ``stacking`` calls that can be
one; ``emission`` finds out how long values live, gives them ``memory``, and writes a Python
function, with the bodies of scans as loops (``looping``) and what is put side by side computed
there (``joining``). ``steps`` says what all of these work on; ``compiled`` runs groups in another
way than by ufuncs: as loops that LLVM compiles.

Variables are read when the function begins, and change after its last line. No array that anybody
else may hold is written: buffers belong to one call, results and unpacked updates are always new,
and packed variables change between two sets of arrays, of which the other one is written if nobody
refers to it any more.
"""

from .compiled.executor import fused
from .plan import Plans, planned

__all__ = ["Plans", "fused", "planned"]
