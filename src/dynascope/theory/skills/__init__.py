"""Skills: the time, samples and neurons that a network needs to learn each skill."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
