"""Inputs on a line: a two-layer linear network of any width, solved exactly, and how its layers align."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
