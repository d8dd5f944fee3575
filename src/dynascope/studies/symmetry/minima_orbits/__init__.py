"""Minima of the loss are orbits of symmetries and are flat along them."""
