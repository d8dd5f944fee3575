"""Exact training dynamics of λ-balanced two-layer linear networks on whitened inputs, in closed form."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
