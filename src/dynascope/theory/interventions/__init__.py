"""Interventions on a network: what pruning conserves, and what feedback weights and linear autoencoders converge to."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
