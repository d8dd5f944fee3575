"""Wide, multi-output and deep linear networks: what is conserved, and where the function alone tells its own motion."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
