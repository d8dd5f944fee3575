"""What classifiers end in when they are trained long past separation: rates, norms and margins."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
