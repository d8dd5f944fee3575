"""What two-layer networks that compose the elements of a finite group learn, in what order, and when."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
