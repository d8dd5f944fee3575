"""A single linear neuron f(x) = a wᵀx: its exact training from any imbalance of its two layers, and its regimes."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
