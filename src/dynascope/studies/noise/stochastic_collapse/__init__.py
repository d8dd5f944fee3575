"""Stochastic collapse: gradient noise drives weights to zero, even at a maximum of the loss, or repels them from it."""
