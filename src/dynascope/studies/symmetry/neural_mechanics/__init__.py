"""Charges of the symmetries of a convolutional network during SGD."""
