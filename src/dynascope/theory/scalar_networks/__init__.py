"""Modes: how one direction of the data is learned by two layers, and when."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
