"""The registry: what plugins provide, how they are found, and which of several providers wins.

Built on ops. ``hookspecs`` lists the hooks. ``installed``, ``loading`` and ``settings`` find
plugins; ``hooks``, ``versions`` and ``kinds`` check them. ``merging`` merges what they provide,
``registry`` looks it up, ``host`` holds the registry of this process, and ``managing`` changes it.
"""
