"""CUDA graphs: plans that run often, launched as a whole.

``captured`` captures a plan, which then reads and writes ``memory``. ``moving`` copies inputs and
results, ``homes`` holds variables that graphs update in place, and ``room`` bounds the memory of
all graphs.
"""
