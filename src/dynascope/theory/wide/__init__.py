"""Wide, multi-output and deep linear networks: what is conserved, and where the function alone tells its own motion."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
