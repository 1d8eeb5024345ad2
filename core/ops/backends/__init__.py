"""Backends: the owners of array types, and the selection of one for new tensors."""
