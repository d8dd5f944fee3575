"""Exact training and learning regimes of a single linear neuron f(x) = a wᵀx, for any imbalance of its layers."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
