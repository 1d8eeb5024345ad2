"""Collectives, as ops: traced, batched, differentiated and saved like any other.

They exchange arrays through the communicator of the process; in a group of one they return their
arguments. The gradient of a collective is that of the sum of all ranks' targets, as in PyTorch.
"""
