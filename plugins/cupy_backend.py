"""The CuPy backend: arrays on an NVIDIA GPU."""
