"""What all ranks of a job compute together, as ops: traced, batched, differentiated, saved.

On values they exchange arrays by the communicator in force; in a group of one they return what they
are given. The gradient of a collective is that of the sum of all ranks' targets, as in PyTorch.
"""
