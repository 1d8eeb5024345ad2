"""Namespaces of few names, a module for each; ``tf`` shows them as ``tf.config`` and so on."""
