"""ReLU networks from small initialisation: where their neurons turn before anything is learned."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
