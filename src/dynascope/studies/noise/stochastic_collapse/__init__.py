"""Stochastic collapse: noise draws weights to zero, even where that is a maximum of the loss, or keeps them away."""
