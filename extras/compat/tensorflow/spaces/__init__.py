"""Small namespaces, a module for each: ``tf.config`` and others."""
