"""Graphs: what a trace builds, with their text, rewriting and the two ways to run them.

It uses batches, because a custom gradient's node serves all examples. It provides ``Graph``,
``Symbol`` and the kinds of nodes; ``replay``, which shows tapes the steps of a graph; and
``compiled``, which calls the selected executor.
"""
