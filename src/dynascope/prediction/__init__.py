"""Prediction by the theory that fits a task and a network, and observation by training the network."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
