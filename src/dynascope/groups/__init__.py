"""Finite groups: tables, representations, the Fourier transform, and encodings of their elements."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
