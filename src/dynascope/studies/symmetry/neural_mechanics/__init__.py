"""Symmetries of a convolutional network, their charges through training by SGD, and the continuous law of these."""
