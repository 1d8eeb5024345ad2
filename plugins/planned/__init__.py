"""Plans: programs on NumPy with planned memory, grouped and packed steps.

A program goes through these modules, in order. ``tracing`` fixes unknown sizes of its inputs.
``lowering`` turns ops into steps (by ``rules``, or by tracing portable kernels). ``combining``
finds steps that run as one: groups of elementwise steps, stacks of calls, and packs of updates.
``emission`` gives values their ``memory``, for as long as they are needed, and writes a Python
function. ``plan`` keeps these functions by the shapes of inputs, and writes the bodies of scans as
loops; ``report`` describes them. ``steps`` has the data structures of all of these.

An executor may run groups otherwise than as ufuncs, by an ``Emitter`` of its own.

Variables are read when the function starts, and change after its last line. No array that other
code may hold is written to: buffers belong to one call, and results and unpacked updates are always
new. Packed variables alternate between two sets of arrays; a set is written to only if no other
code still refers to it.
"""

from .plan import Plans, planned

__all__ = ["Plans", "planned"]
