"""Exact continual, reversal and transfer learning of λ-balanced two-layer linear networks."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
