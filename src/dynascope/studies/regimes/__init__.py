"""Studies of lazy and rich learning, which depend on scale, width and learning rates."""
