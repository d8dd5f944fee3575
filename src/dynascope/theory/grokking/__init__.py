"""Grokking that can be predicted: a diagonal network with weight decay, and how to measure the delay of any network."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
