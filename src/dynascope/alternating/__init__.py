"""Alternating gradient flows: prediction of saddle-to-saddle training, one neuron at a time."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
