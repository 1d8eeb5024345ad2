"""The bytes of a file: containers, and what is checked in any of them before it is read."""
