"""Early alignment of small ReLU networks: the directions towards which neurons turn before the loss decreases."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
