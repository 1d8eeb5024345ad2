"""Random numbers, determined by a key that is a tensor like any other.

The ops turn keys into numbers (``stateless``). A ``Generator`` makes a new key for each draw, and
the public ``functions`` share one generator.
"""
