"""Finite groups: multiplication tables, representations, Fourier transforms and encodings."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
