"""Linear attention on in-context regression: what it learns, in what order, and when."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
