"""Fuzzers: random calls, programs and uses of gradtape, compared with correct results.

``python -m gradtape.testing.fuzz {files,numpy,programs,traps} --seconds N --seed S``. A failure is
reduced to the smallest case that still fails, and printed as a program that can be run.
"""
