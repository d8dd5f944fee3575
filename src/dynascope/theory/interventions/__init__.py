"""Interventions on a network: pruning, learning rules for feedback weights, and regularised linear autoencoders."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
