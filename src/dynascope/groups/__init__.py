"""Finite groups: tables, representations, the Fourier transform, and encodings of their elements."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
