"""The JAX backend: arrays on any device of XLA, and graphs compiled by ``jax.jit``."""
