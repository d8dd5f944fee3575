"""Alignment of the layers of a network with each other, with the data, and with their initial weights."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
