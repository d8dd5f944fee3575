"""Discrete-time training with any loss and optimiser, and statistics of the training steps."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
