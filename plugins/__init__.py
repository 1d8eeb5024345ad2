"""The plugins that ship with gradtape; they enter through the same door as anyone's."""
