"""Prediction: the theory that fits a task and a network, as a record."""

from dynascope.arguments import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
