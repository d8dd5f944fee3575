"""Late training of classifiers, long after the data are separated: growth rates, norms and margins."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
