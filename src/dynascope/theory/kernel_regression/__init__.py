"""Kernel regression: the modes of a kernel, which of them are learned from n samples, when, and what error is left."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
