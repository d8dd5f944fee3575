"""Training by discrete steps: any loss, any optimiser, and what happens inside a step."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
