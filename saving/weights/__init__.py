"""Weights alone: into models of one's own code, from gradtape's files and other frameworks'."""
