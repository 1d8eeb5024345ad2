"""Reports on files: their contents, their differences, and a check of their functions."""
