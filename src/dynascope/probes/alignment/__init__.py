"""How the layers of a network lie to each other, to the data, and to where they started."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
