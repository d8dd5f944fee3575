"""Compare observations with predictions on the same axes, and reach a verdict."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
