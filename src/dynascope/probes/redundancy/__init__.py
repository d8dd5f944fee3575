"""Units that do the same or nothing: vanishing, equal and dead ones, and how noise moves what tells them apart."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
