"""Small targets make a network lazy: limits and speed of the change of its features and its function."""
