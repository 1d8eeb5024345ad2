"""Names for people who arrive from other frameworks; nothing here is imported by gradtape itself.

``import gradtape.compat.tensorflow as tf`` runs code that was written for ``tf.GradientTape``.
"""
