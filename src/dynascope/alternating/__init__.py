"""Alternating gradient flows: a network followed neuron by neuron, from one saddle to the next."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
