"""The empirical neural tangent kernel (NTK): algorithms, their costs, and measures of feature learning."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
