"""Regimes: whether a network scaled to a limit learns features, and how fast."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
