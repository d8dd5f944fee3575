"""Gradient descent deviates from gradient flow at first order in the learning rate, from a modified flow at second."""
