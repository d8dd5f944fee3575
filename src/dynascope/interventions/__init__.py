"""Changes to networks and training, with a theory of their effect."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
