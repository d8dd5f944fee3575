"""Quadratic networks on modular addition: the learned frequencies, their order and their times."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
