"""Two-layer networks that compose elements of a finite group: order and times of the learned representations."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
