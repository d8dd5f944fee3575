"""Stochastic collapse: gradient noise that drives weights to zero, or keeps them away from zero."""
