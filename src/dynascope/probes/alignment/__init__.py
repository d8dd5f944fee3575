"""How the layers of a network lie to each other, to the data, and to where they started."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
