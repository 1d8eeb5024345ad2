"""The registry: what plugins provide, how they are found, and which of several providers wins.

Built on ops. ``hookspecs`` lists the hooks. ``loading`` finds plugins and calls their hooks;
``hooks`` and ``kinds`` check them; ``info`` says what is known of each, and what the user wants.
``merging`` merges what they provide, ``changes`` are what they change in what is not theirs,
``registry`` looks all up, and ``host`` holds the registry of this process and changes it.
"""
