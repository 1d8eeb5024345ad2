"""Graphs: what a trace builds, its text, its rewriting, and the two ways to run it.

Stands on the tape, which follows a graph that runs op by op. Hands out ``Graph``, ``Symbol`` and
the kinds of nodes, ``replay``, and ``compiled``, which asks the selected executor.
"""
