"""Stochastic collapse: gradient noise can drive weights to a loss maximum at zero, or repel them from zero."""
