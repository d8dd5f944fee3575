"""Regimes: whether a network scaled to a limit learns features, and how fast."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
