"""Fuzzers: random calls, programs and uses of gradtape, held against what is known to be right.

``python -m gradtape.testing.fuzz {numpy,programs,traps} --seconds N --seed S``. What fails is
reduced to the smallest case that still fails, and printed as a program that can be run.
"""
