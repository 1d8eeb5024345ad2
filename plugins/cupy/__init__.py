"""The CuPy backend: arrays on NVIDIA GPUs.

``backend`` is the plugin, ``devices`` and ``diagnosis`` know about GPUs, and ``names`` is the
namespace that kernels are given. ``writing`` has the texts of kernels in CUDA C, and ``launching``
launches them. ``compiled`` runs traced programs. Ops that run one by one are kernels that ``eager``
makes of their steps, unless ``kernels``, ``fused`` or ``random`` has one for them.
"""
