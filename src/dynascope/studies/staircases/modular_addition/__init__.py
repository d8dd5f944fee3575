"""Quadratic networks learn modular addition one frequency at a time."""
