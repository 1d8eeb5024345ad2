"""The base classes of layers. Nothing here depends on a particular layer."""
