"""Changes to networks and losses whose effect is known in closed form."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
