"""What did happen: measurements on arrays of NumPy, JAX or PyTorch alike."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
