"""Random numbers, determined by a key that is a tensor like any other.

The ops turn keys into numbers (``keys``, ``distributions``, ``gamma``); a ``Generator`` counts keys
up for users, and ``functions`` holds those that share one.
"""
