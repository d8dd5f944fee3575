"""Exact dynamics of scalar networks and of the modes of two-layer networks, with emergence times and stages."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
