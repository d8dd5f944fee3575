"""Quadratic networks on modular addition: which frequencies they learn, in what order, and when."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
