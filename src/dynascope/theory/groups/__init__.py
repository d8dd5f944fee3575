"""Two-layer networks that compose elements of a finite group: learned irreps, their order and their times."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
