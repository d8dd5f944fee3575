"""Symmetries of networks, found in their programs or from their gradients, and the charges that they conserve."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
