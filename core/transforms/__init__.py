"""Transforms of functions: ``vmap``, forward mode, gradients, Jacobians, Hessians.

Built on the tape and on batches; the arrays of a graph are just another array type here.
"""
