"""Effects of batch noise on weights: moments of SGD near a minimum, diffusion, and attraction to invariant sets."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
