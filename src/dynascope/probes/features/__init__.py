"""Metrics of the last-layer features: how many there are, how many are useful, and how many are used."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
