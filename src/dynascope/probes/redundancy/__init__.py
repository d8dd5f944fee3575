"""Redundant units: vanishing, duplicate and dead units, and the curvature along their differences."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
