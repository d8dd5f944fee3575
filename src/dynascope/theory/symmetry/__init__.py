"""Charges (quantities that gradient flow conserves) of networks with symmetries: their laws, number and effects."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
