"""Gradient descent deviates from gradient flow at first order in η, but from a modified flow only at second order."""
