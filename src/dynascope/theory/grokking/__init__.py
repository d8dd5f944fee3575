"""Grokking that can be predicted: a diagonal network with weight decay, and how to measure the delay of any network."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
