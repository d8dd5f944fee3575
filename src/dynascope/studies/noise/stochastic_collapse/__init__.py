"""Stochastic collapse: gradient noise can drive weights to zero, even if zero maximises the loss, or repel them."""
