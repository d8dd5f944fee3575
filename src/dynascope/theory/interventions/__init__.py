"""Interventions on a network: conservation laws of pruning, and limits of feedback weights and autoencoders."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
