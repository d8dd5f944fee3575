"""Metrics of last-layer features: their effective number, and how many of them are useful and used."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
