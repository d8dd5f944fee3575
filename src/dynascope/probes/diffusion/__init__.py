"""How weights wander: displacements and their exponent, the noise of batches, and curvature along it."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
