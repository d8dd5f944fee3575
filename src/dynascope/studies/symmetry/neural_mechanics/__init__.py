"""Noether charges of a convolutional network during SGD."""
