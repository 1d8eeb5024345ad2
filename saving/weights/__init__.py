"""Weights alone: into your own models, from gradtape's files and those of formats."""
