"""Random numbers made on the GPU, equal to those that NumPy draws on the host.

``texts`` has the CUDA C, of which ``sources`` makes kernels for ``samplers``, the distributions;
``ziggurat`` has the tables of normal and exponential numbers. ``kernels`` draws for ops that run
one by one, and ``rules`` in compiled programs, with the same kernels. The host reads nothing, and
the number of launches is fixed, so that a step that draws can be a CUDA graph.

Logarithms and exponentials may differ from those of the host's library in the last place. So may a
normal number in the tail, one of 3,900, an exponential one in the tail, one of 2,200, and Gumbel
numbers, which are logarithms. A draw whose rejection hinges on the last place of an exponential
shifts all numbers after it: its probability is below 1e-10 for each number.

Gamma-distributed numbers and permutations are drawn on the host. How many words a gamma-distributed
number takes depends on its own concentration, so no draw can begin before the last one has ended.
The swaps of a permutation depend on each other in the same way.
"""
