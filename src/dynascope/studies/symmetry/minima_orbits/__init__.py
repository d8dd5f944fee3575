"""Minima of the loss are orbits of symmetries: flat along the orbit, but of varying sharpness."""
