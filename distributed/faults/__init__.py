"""What becomes of a job in which a rank fails: it ends, and says which rank it was and why.

Between the ranks goes a *lifeline*: a TCP connection from each rank to a hub on rank 0, served by a
thread of its own. It works while the ranks wait in a collective, whatever the engine allows its
threads; the system itself tells the hub when a process at its other end has died; and nothing of it
is left behind, as files would be.
"""
