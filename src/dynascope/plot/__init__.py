"""Figures of records: the prediction dashed over the solid observation."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
