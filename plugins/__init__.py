"""The plugins that ship with gradtape; they use the same hooks as any other plugin."""
