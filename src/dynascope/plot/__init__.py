"""Figures of records, with predictions as dashed lines over solid observations."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
