"""What a file holds, and whether it still computes what it did."""
