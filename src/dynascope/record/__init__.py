"""Records: what both theory and experiment produce, how they are stored, and the clock that they share."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
