"""Gradient flow minimises the norm of the fastest-growing parameters only, which can reduce the Euclidean margin."""
