"""Layers with one input: dense layers, embeddings, activations, scaling."""
