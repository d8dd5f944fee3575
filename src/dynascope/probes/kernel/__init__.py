"""The neural tangent kernel: algorithms, what each costs, and what kernels say about feature learning."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
