"""The bytes of a file: HDF5 that is checked before it is read."""
