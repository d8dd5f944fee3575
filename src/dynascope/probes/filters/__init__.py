"""Structure of the first-layer filters of a convolutional network, compared with white noise."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
