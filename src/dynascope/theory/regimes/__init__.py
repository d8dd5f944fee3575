"""Learning regimes of networks in a scaling limit: whether they learn features, and how fast."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
