"""Graphs: what a trace builds, its text, its rewriting, and the two ways to run it.

Stands on batches: a custom gradient's node is one for all examples. Hands out ``Graph``, ``Symbol``
and the kinds of nodes, ``replay``, by which tapes see what a graph does, and ``compiled``, which
asks the selected executor.
"""
