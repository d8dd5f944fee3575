"""Compiled programs: kept between runs, and free of calls back to Python, which could not be kept."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
