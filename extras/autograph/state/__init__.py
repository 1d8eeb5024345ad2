"""Which Python objects traced blocks reach, and what they change in them."""
