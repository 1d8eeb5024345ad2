"""Weights files of other frameworks: Keras's are read, and PyTorch's and NumPy's are recognised."""

# whole, before its submodules: two threads that import some of them would wait for each other
from .. import saving as saving
