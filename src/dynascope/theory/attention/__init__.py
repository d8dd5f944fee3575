"""Linear attention on in-context regression: the learned modes, their order and their times."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
