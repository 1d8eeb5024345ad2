"""A file as one page of HTML."""
