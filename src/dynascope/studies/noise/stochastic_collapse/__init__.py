"""Stochastic collapse: gradient noise drives weights to zero or keeps them away from zero."""
