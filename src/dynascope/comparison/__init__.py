"""Comparison: observation and prediction on the same axes, with a verdict."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
