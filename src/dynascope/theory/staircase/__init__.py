"""Loss staircases: the plateaus and jumps of training from small initialisation, predicted without training."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
