"""Checks of executors, engines and formats, and of everything that a plugin provides."""
