"""Recorders: measure any training run on a schedule, in JAX and PyTorch."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
