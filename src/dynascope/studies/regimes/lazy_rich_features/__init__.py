"""Small targets make a network lazy: what its features and its function then approach, and how fast."""
