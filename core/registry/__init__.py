"""The registry: what plugins provide, how they are found, and which of several providers wins.

Built on ops. ``hookspecs`` lists the hooks, ``installed`` finds plugins, ``hooks`` and ``kinds``
check them, ``registry`` merges what they provide, and ``host`` holds the registry of this process.
"""
