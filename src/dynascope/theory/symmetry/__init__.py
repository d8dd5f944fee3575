"""Charges of networks with symmetries: exact laws for every training step, consequences for norms, and their number."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
