"""Fuzzers: random calls, programs and uses of gradtape, compared with correct results.

``python tests/fuzz COMMAND --seconds N --seed S`` runs one of ``autograph``,
``files``, ``nestings``, ``numpy``, ``programs``, ``training`` and ``traps``. A failure is reduced
to the smallest case that still fails, and printed as a program that can be run.
"""
