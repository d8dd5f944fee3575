"""Diffusion of weights: displacements and their exponent, gradient noise, and curvatures of the loss."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
