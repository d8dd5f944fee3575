"""Grokking: exact predictions for a diagonal network with weight decay, and a measure of the delay for any network."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
