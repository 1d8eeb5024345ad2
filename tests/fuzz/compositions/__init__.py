"""Modes for compositions: pairs of transformations, reads of values, and memory of batches."""
