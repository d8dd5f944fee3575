"""Two-layer networks learn the directions of a multi-index model one after the other."""
