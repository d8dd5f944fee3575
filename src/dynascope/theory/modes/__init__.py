"""Modes: how one direction of the data is learned by two layers, and when."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
