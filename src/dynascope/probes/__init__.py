"""Measurements of networks and training runs, on NumPy, JAX or PyTorch arrays."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
