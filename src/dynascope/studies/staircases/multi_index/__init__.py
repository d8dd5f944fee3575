"""Two-layer networks learn the directions of a multi-index model one at a time."""
