"""A single linear neuron f(x) = a wᵀx: its exact training from any imbalance of its two layers, and its regimes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
