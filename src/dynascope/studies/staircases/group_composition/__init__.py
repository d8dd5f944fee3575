"""Two-layer networks learn to compose group elements one irreducible representation at a time."""
