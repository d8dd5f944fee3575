"""Records: what both theory and experiment produce, how they are stored, and the clock that they share."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
