"""Linear attention on in-context regression: what it learns, in what order, and when."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
