"""MPI as an engine of collectives, by mpi4py, which is imported when a job is joined."""
