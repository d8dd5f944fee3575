"""Exact dynamics and layer alignment of two-layer linear networks of any width on inputs along a line."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
