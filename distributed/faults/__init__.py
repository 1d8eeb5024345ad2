"""Handles failures of ranks: ends the job, and reports the rank and the reason.

Each rank has a *lifeline*: a TCP connection to a hub on rank 0, served by threads on both sides. It
works while ranks wait in a collective, whatever threads the engine allows. The operating system
reports a process that died to the hub at once. No files are left behind.
"""
