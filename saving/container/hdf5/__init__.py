"""HDF5: a writer and a checking reader of files, without the HDF5 library."""
