"""Ops on arrays: kernels, rules, and the backends that own array types.

Built on base. It has ``Primitive``, ``Rule``, dispatch by array type, and ``Backend``.
"""
