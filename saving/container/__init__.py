"""The bytes of a file: HDF5, checked before it is read."""
