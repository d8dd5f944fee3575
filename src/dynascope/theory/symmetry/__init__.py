"""Charges of networks with symmetries: how every step moves them, what they say of the norm, and how many there are."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
