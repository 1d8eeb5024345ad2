"""What happens over epochs: the loop, its progress and callbacks, and how a run is resumed."""
