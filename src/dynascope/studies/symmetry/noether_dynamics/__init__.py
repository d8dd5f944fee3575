"""Normalised layers: steps and decay balance in the norm of the weights, which adapts their learning rate."""
