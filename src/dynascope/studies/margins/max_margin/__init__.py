"""Gradient flow minimises only the norm of the fastest-growing parameters, which can reduce the Euclidean margin."""
