"""Stochastic collapse: gradient noise can drive weights to zero, even to a maximum of the loss, or repel them."""
