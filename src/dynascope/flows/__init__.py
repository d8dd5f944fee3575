"""Continuous-time dynamics: gradient flow, Langevin dynamics, and exact flows of solvable networks."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
