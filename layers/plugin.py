"""The layer classes that saved files may name."""
