"""Collectives as ops, which can be traced, batched, differentiated and saved.

A collective exchanges arrays through the active communicator. In a group of one it returns its
argument. Its gradient is that of the sum of all ranks' targets, as in PyTorch.
"""
