"""Maps over many runs: a study or any function, evaluated on a grid of values, in a store that survives crashes."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
