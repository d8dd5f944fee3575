"""What is learned: data with its second moments."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
