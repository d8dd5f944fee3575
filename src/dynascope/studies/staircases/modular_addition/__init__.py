"""Quadratic networks learn modular addition one frequency after the other."""
