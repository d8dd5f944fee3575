"""From one task to the next: what a λ-balanced linear network forgets, how it reverses, and what its features give."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
