"""What the noise of batches does to weights: the moments of SGD near a minimum, and where noise moves them to."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
