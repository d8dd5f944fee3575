"""From one task to the next: what a λ-balanced linear network forgets, how it reverses, and what its features give."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
