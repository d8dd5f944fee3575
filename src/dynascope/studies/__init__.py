"""Published results put to the test: a task, a network, a flow and a theory side by side, one study a file."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
