"""Records of theories and experiments, their storage, and their common time axis."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
