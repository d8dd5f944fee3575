"""Prediction: the theory that fits a task and a network, as a record."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
