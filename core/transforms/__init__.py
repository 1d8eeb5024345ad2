"""Transforms of functions: ``vmap``, forward mode, gradients, Jacobians, Hessians.

Stands on the tape and on batches; a graph is one more array type to it.
"""
