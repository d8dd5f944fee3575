"""Alternating gradient flows: a network followed neuron by neuron, from one saddle to the next."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
