"""The CuPy backend: arrays on NVIDIA GPUs."""
