"""Published results put to the test: a task, a network, a flow and a theory side by side, one study a file."""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
