"""Function-space dynamics of linear networks: conserved matrices, preconditioners and gradient flows."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
