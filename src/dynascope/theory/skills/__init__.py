"""Skills: when, from how many samples and with how many neurons a network learns each of them."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
