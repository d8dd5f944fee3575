"""Charges of networks with symmetries: exact laws for every training step, effects on norms, and number of laws."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
