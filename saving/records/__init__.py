"""What the JSON of a file says, and of which Python values."""
