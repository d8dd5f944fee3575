"""What should happen: closed forms and exact algorithms, without training."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
