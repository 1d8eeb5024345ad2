"""Names for people who arrive from other frameworks; hints show them, nothing else uses them.

``import gradtape.compat.tensorflow as tf`` runs code that was written for ``tf.GradientTape``.
"""
