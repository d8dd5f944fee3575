"""Fixed and free features: kernel regression, overfitting, and features that collapse."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
