"""Studies of published results. Each study trains networks and compares them with the predictions of a theory."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
