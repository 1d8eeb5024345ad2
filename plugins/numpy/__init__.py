"""The NumPy backend: arrays in host memory."""
