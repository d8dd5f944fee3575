"""Compilation of JAX programs, and a cache that keeps compiled programs between runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
