"""Control flow as ops: ``cond``, ``while_loop``, ``scan`` and ``map``.

On values, these are Python's own ``if`` and loops. In a trace, or where a decision differs between
the examples of a batch, they become one op that runs graphs.
"""
