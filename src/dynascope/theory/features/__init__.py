"""Kernel and ridge regression with fixed features, overfitting, and neural collapse with trainable features."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
