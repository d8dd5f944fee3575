"""Metrics of the last-layer features: how many there are, how many are useful, and how many are used."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
