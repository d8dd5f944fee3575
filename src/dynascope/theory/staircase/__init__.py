"""Loss staircases: plateaus and jumps of the loss from small initial weights, predicted without training."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
