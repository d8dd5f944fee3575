"""Minima are orbits of symmetries: flat along these alone, and sharper at one point than at another."""
