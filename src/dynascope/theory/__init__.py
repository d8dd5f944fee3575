"""Theories of training: closed forms and exact algorithms that predict results without training a network."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
